// Operands through swizzled buffers, fragments one k-step ahead of the instruction that needs them.
// RUN: tilec opt %s --passes stage-operands --target sm_80 --num-warps 4 | filecheck %s

#acc = #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,32@1) V(2,2,4):(1@1,8@0,8@1)">
#l = #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8):(1@1)">
#r = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,2):(1@1,16@0)">

// CHECK-LABEL: @two_steps
func.func @two_steps(%a: tensor<32x32xf16, #l>, %b: tensor<32x64xf16, #r>, %c: tensor<32x64xf32, #acc>) attributes {tile.kernel} {
  // CHECK: %[[A:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<32x32xf16>, #gpu_tile.shared<"S<2,4,3> o (32,32):(32,1)">>
  // CHECK-NEXT: "gpu_tile.buffer_store"(%{{.*}}, %[[A]])
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<32x64xf16>, #gpu_tile.shared<"S<3,4,3> o (32,64):(64,1)">>
  // CHECK-NEXT: "gpu_tile.buffer_store"(%{{.*}}, %[[B]])
  // CHECK: %[[A0:.*]] = "gpu_tile.buffer_load"{{.*}} -> tensor<32x16xf16, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,0) V(2,2,2):(1@1,8@0,8@1)">>
  // CHECK: %[[B0:.*]] = "gpu_tile.buffer_load"{{.*}} -> tensor<16x64xf16, #gpu_tile.layout<"T(4,8,2,2):(2@0,1@1,0,32@1) V(2,2,4):(1@0,8@0,8@1)">>
  // CHECK: "gpu_tile.view"(%[[A]], %{{.*}}, %c16_i32)
  // CHECK: %[[A1:.*]] = "gpu_tile.buffer_load"
  // CHECK: "gpu_tile.view"(%[[B]], %c16_i32
  // CHECK: %[[B1:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[D0:.*]] = "gpu_tile.mma"(%[[A0]], %[[B0]], %{{.*}})
  // CHECK-NEXT: "gpu_tile.mma"(%[[A1]], %[[B1]], %[[D0]])
  %d = "tile.dot"(%a, %b, %c) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<32x32xf16, #l>, tensor<32x64xf16, #r>, tensor<32x64xf32, #acc>) -> tensor<32x64xf32, #acc>
  return
}
