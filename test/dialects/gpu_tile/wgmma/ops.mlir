// Warpgroup multiplications, printed as they were read.
// RUN: %roundtrip

!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!h = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!fragment = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,2,4):(1@1,8@0,8@1,16@1)">>

// CHECK-LABEL: @both_operands_in_buffers
func.func @both_operands_in_buffers(%a: !a, %b: !b, %acc: !acc) {
  // CHECK: [[P:%.*]] = "gpu_tile.wgmma_fence"(%{{.*}}) : (tensor<64x64xf32, {{.*}}) -> !gpu_tile.pending<tensor<64x64xf32
  %p = "gpu_tile.wgmma_fence"(%acc) : (!acc) -> !p
  // CHECK: [[Q:%.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, [[P]]) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !p) -> !p
  // CHECK: [[R:%.*]] = "gpu_tile.wgmma_wait"([[Q]]) {pending = 1 : i32} : {{.*}} -> !gpu_tile.pending<tensor<64x64xf32
  %r = "gpu_tile.wgmma_wait"(%q) {pending = 1 : i32} : (!p) -> !p
  // CHECK: "gpu_tile.wgmma_meanwhile"() : () -> ()
  "gpu_tile.wgmma_meanwhile"() : () -> ()
  // CHECK: "gpu_tile.wgmma_wait"([[R]]) {pending = 0 : i32} : {{.*}} -> tensor<64x64xf32
  %c = "gpu_tile.wgmma_wait"(%r) {pending = 0 : i32} : (!p) -> !acc
  return
}

// CHECK-LABEL: @lhs_in_registers
func.func @lhs_in_registers(%a: !fragment, %b: !b, %p: !p) {
  // CHECK: "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %{{.*}}) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (tensor<64x64xbf16
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!fragment, !b, !p) -> !p
  return
}
