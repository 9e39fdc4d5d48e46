// A vote of the warp decides: two factors of a thread are compared with one, once each.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 1 | filecheck %s

#acc = #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">
#row = #gpu_tile.layout<"T(4,8):(0,1@0) V(2):(8@0)">
!s = tensor<16x16xf32, #acc>

// CHECK-LABEL: @scale
// CHECK-COUNT-2: arith.cmpf une
// CHECK-NOT: arith.cmpf
// CHECK: arith.ori
// CHECK: %[[ANY:.*]] = llvm.call_intrinsic "llvm.nvvm.vote.any.sync"
// CHECK: scf.if %[[ANY]]
// CHECK-COUNT-8: arith.mulf
// CHECK: else
// CHECK-NOT: arith.mulf
func.func @scale(%x: memref<16x16xf32, strided<[16, 1]>>, %f: f32, %g: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant dense<8> : tensor<16xi32, #row>
  %sums = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (memref<16x16xf32, strided<[16, 1]>>, index, index) -> !s
  %iota = "tile.iota"() {axis = 0 : i32} : () -> tensor<16xi32, #row>
  %low = arith.cmpi slt, %iota, %c8 : tensor<16xi32, #row>
  %a = tensor.splat %f : tensor<16xf32, #row>
  %b = tensor.splat %g : tensor<16xf32, #row>
  %row = arith.select %low, %a, %b : tensor<16xi1, #row>, tensor<16xf32, #row>
  %factors = "tile.broadcast"(%row) {dims = array<i32: 0>} : (tensor<16xf32, #row>) -> !s
  %y = "gpu_tile.scale"(%sums, %factors) : (!s, !s) -> !s
  "tile.store"(%y, %x, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<16x16xf32, strided<[16, 1]>>, index, index) -> ()
  return
}
