// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 | filecheck %s
!tile = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map
!c = memref<?x?xbf16, strided<[?, 1]>>

// Where a warp's rows lie is computed from its number, the same for all lanes; the copy belongs to
// the lane that it elects. All lanes wait and commit, without branches.
// CHECK-LABEL: llvm.func @store(
// CHECK: %[[ELECTED:.*]] = nvvm.elect.sync
// CHECK: %[[WARP:.*]] = nvvm.shfl.sync idx %{{[^,]*}}, %{{[^,]*}},
// CHECK: %[[FIRST:.*]] = arith.shli %[[WARP]], %c5_i32
// CHECK: "cp.async.bulk.wait_group.read 1;", "~{memory}"
// CHECK: "bar.warp.sync 0xffffffff;"
// CHECK: "fence.proxy.async.shared::cta;"
// CHECK: "bar.warp.sync 0xffffffff;"
// CHECK-NOT: scf.if
// CHECK: "@$4 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$1, {$2, $3}], [$0];", "r,l,r,r,b,~{memory}" %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[ELECTED]] :
// CHECK-NOT: scf.if
// CHECK: "cp.async.bulk.commit_group;", "~{memory}"
func.func @store(%t: f32, %c: !c, %m: i32, %n: i32) attributes {tile.kernel} {
  %x = arith.truncf %t : f32 to bf16
  %tile = tensor.splat %x : !tile
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%c) {box = array<i32: 16, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!c) -> !map
  "gpu_tile.warp_tma_store"(%tile, %b, %map, %m, %n) {pending = 1 : i32} : (!tile, !b, !map, i32, i32) -> ()
  return
}
