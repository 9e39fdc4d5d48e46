// Copies into the CTA's own memory say so where PTX has words for it: of others ptxas makes calls for
// sm_120a, and ignores setmaxnreg (C7506).
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_120a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier

// CHECK-LABEL: llvm.func @load(
func.func @load(%a: !m, %k: i32, %n: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %both = arith.constant 3 : i32
  %b = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !b
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !bar
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // CHECK: cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [$0]
  "gpu_tile.tma_load"(%map, %b, %full, %zero, %k, %n) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32) -> ()
  // CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
  "gpu_tile.tma_multicast"(%map, %b, %full, %zero, %both, %k, %n) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32, i32) -> ()
  return
}
