// An rhs that is put together of two tiles, as 4-bit numbers are taken out of words: a thread's
// neighbours along n are its slowest registers. The buffer is contiguous along n all the same.
// RUN: tilec opt %s --passes infer-layouts,stage-operands --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!h = tensor<64x32xf16>
!a = tensor<64x64xf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @joined
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %{{.*}}) : (tensor<64x64xf16, #gpu_tile.layout<"T(4,32):(16@1,1@0) V(8,2,2):(2@1,32@0,1@1)">>, !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>)
func.func @joined(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %ta = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !a
  %lo = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !h
  %hi = arith.negf %lo : !h
  %l = "tile.reshape"(%lo) : (!h) -> tensor<64x32x1xf16>
  %g = "tile.reshape"(%hi) : (!h) -> tensor<64x32x1xf16>
  %j = "tile.join"(%l, %g) {axis = 2 : i32} : (tensor<64x32x1xf16>, tensor<64x32x1xf16>) -> tensor<64x32x2xf16>
  %tb = "tile.reshape"(%j) : (tensor<64x32x2xf16>) -> !a
  %d = "tile.dot"(%ta, %tb, %zero) {options = {instruction = "wgmma.m64n64k16.f32.f16.f16"}} : (!a, !a, !c) -> !c
  "tile.store"(%d, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
