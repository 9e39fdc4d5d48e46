// A tile and its transpose, both operands: one buffer holds them, and one is a view of it.
// RUN: tilec opt %s --passes stage-operands --target sm_90a | filecheck %s

!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!tile = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!turned = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@0,1@1) V(8,4):(1@0,16@1)">>

// CHECK-LABEL: @both
// CHECK: %[[A:.*]] = "gpu_tile.alloc"
// CHECK: %[[B:.*]] = "gpu_tile.alloc"
// CHECK: "gpu_tile.wgmma"(%[[A]], %[[B]],
// CHECK-NOT: gpu_tile.alloc
// CHECK: %[[V:.*]] = "gpu_tile.transpose_view"(%[[B]]) {permutation = array<i32: 1, 0>}
// CHECK: "gpu_tile.wgmma"(%[[A]], %[[V]],
func.func @both(%a: !tile, %b: !tile, %zero: !acc) -> !acc attributes {tile.kernel} {
  %t = "tile.transpose"(%b) {permutation = array<i32: 1, 0>} : (!tile) -> !turned
  %c = "tile.dot"(%a, %t, %zero) {precision = "ieee", options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!tile, !turned, !acc) -> !acc
  %d = "tile.dot"(%a, %b, %c) {precision = "ieee", options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!tile, !tile, !acc) -> !acc
  return %d : !acc
}
