// What is added to the sums of a product is loaded in whole vectors by the warps that hold them:
// lanes exchange elements, and no buffer takes shared memory from the rings.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!t = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @residual
// CHECK: %[[IN:.*]] = "tile.load"({{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: "gpu_tile.convert_layout"(%[[IN]]){{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @residual(%r: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %a: !t, %b: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %x = "tile.load"(%r, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !t
  %wide = arith.extf %x : !t to !c
  %y = arith.addf %sum, %wide : !c
  %narrow = arith.truncf %y : !c to !t
  "tile.store"(%narrow, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}
