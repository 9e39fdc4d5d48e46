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
