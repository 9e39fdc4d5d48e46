// The sums of a product that leave in each iteration: lanes of a warp exchange what they hold, so
// that each has whole vectors, and no warp waits for another. In front of the end they leave by rows
// of the whole tile.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!t = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @in_a_loop
// CHECK: %[[OUT:.*]] = "gpu_tile.convert_layout"({{.*}}#gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>) -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: "tile.store"(%[[OUT]]
func.func @in_a_loop(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %n: index, %a: !t, %b: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  scf.for %i = %c0 to %n step %c64 {
    %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
    %narrow = arith.truncf %sum : !c to !t
    "tile.store"(%narrow, %c, %i, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @at_the_end
// CHECK: %[[OUT:.*]] = "gpu_tile.convert_layout"({{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
// CHECK: "tile.store"(%[[OUT]]
func.func @at_the_end(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %a: !t, %b: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %narrow = arith.truncf %sum : !c to !t
  "tile.store"(%narrow, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}
