// A k that is no multiple of the instruction's: zeros in the last fragments.
// RUN: tilec opt %s --passes stage-operands --target sm_80 --num-warps 4 | filecheck %s

#acc = #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,32@1) V(2,2,4):(1@1,8@0,8@1)">
#l = #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8):(1@1)">
#r = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,2):(1@1,16@0)">

// CHECK-LABEL: @two_and_a_half_steps
func.func @two_and_a_half_steps(%a: tensor<32x40xf16, #l>, %b: tensor<40x64xf16, #r>, %c: tensor<32x64xf32, #acc>) attributes {tile.kernel} {
  // CHECK-COUNT-2: gpu_tile.buffer_load
  // CHECK-NOT: arith.select
  // CHECK: tensor<32x8xf16
  // CHECK: "tile.iota"() {axis = 1 : i32}
  // CHECK: dense<8>
  // CHECK: arith.cmpi slt
  // CHECK: arith.select {{.*}} tensor<32x8xf16
  // CHECK: "tile.iota"() {axis = 0 : i32}
  // CHECK: arith.select {{.*}} tensor<8x64xf16
  %d = "tile.dot"(%a, %b, %c) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<32x40xf16, #l>, tensor<40x64xf16, #r>, tensor<32x64xf32, #acc>) -> tensor<32x64xf32, #acc>
  return
}
