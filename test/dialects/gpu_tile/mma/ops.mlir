// Matrix instructions, printed as they were read.
// RUN: %roundtrip

// One warp, one instruction.
// CHECK-LABEL: @one_bf16_instruction
func.func @one_bf16_instruction(
    %a: tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>,
    %b: tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>,
    %c: tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>) {
  // CHECK: "gpu_tile.mma"(%{{.*}}, %{{.*}}, %{{.*}}) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>, {{.*}}) -> tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>, tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>, tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>) -> tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
  return
}

// Two by two warps, each 64x64: the n-warps hold copies of the lhs, the m-warps of the rhs.
// CHECK-LABEL: @four_warps
func.func @four_warps(
    %a: tensor<128x16xf16, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,0) V(2,2,2,4):(1@1,8@0,8@1,16@0)">>,
    %b: tensor<16x128xf16, #gpu_tile.layout<"T(4,8,2,2):(2@0,1@1,0,64@1) V(2,2,8):(1@0,8@0,8@1)">>,
    %c: tensor<128x128xf32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,2,4,8):(1@1,8@0,16@0,8@1)">>) {
  // CHECK: "gpu_tile.mma"
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.f16.f16"} : (tensor<128x16xf16, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,0) V(2,2,2,4):(1@1,8@0,8@1,16@0)">>, tensor<16x128xf16, #gpu_tile.layout<"T(4,8,2,2):(2@0,1@1,0,64@1) V(2,2,8):(1@0,8@0,8@1)">>, tensor<128x128xf32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,2,4,8):(1@1,8@0,16@0,8@1)">>) -> tensor<128x128xf32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,2,4,8):(1@1,8@0,16@0,8@1)">>
  return
}

// Scales: of 16 rows from two lanes of four, of 8 columns from one.
// CHECK-LABEL: @with_scales
func.func @with_scales(%a: tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>, %b: tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>, %c: tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>, %s: tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>, %t: tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>) {
  // CHECK: "gpu_tile.mma_scaled"(%{{.*}}) {block = 1 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 1 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>, tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>, tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>, tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>, tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>) -> tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
  return
}
