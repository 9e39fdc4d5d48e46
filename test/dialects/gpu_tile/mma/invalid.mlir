// Every rule of gpu_tile.mma.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_result_is_not_the_accumulator(%a: !a, %b: !b, %c: !c) {
  // expected-error-re @below {{'gpu_tile.mma' op result type tensor<16x8xf64, .*> differs from the accumulator's tensor<16x8xf32, .*>}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> tensor<16x8xf64, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_shapes_do_not_multiply(%a: !a, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op shapes do not multiply: 16x16 by 16x16 into 16x8}}
  %d = "gpu_tile.mma"(%a, %a, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !a, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_unknown_instruction(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op unknown instruction 'mma.m16n8k99'; known: mma.m16n8k16.f32.f16.f16}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k99"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32>
func.func @mma_operand_without_layout(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op expected a tile with a #gpu_tile.layout, found no layout}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_of_other_element_types(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op mma.m16n8k16.f32.f16.f16 multiplies f16, f16 and f32, found bf16, bf16, f32}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_operands_on_other_thread_counts(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op operands are spread over 64, 32 and 32 threads}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2):(1@1,8@0)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_registers_are_no_whole_fragments(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op lhs: layout T(4,8):(4@1,1@0) V(4,2):(1@1,8@0) does not hold whole fragments}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(8,4):(1@0,2@1) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
func.func @mma_lanes_in_another_order(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op lhs: lane 1 does not hold its part of mma.m16n8k16.f32.bf16.bf16}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<32x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2,2):(1@1,8@0,8@1,16@0)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<32x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,4):(1@1,8@0,16@0)">>
func.func @mma_rows_do_not_meet_the_accumulator(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op lhs and rhs registers do not meet the accumulator's}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<32x16xbf16, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8,2):(2@0,1@1,0) V(2,2):(1@0,8@0)">>
!c = tensor<32x8xf32, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,16@0) V(2,2):(1@1,8@0)">>
func.func @mma_second_warp_has_the_rows_of_the_first(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op thread 32: lhs and rhs do not meet the accumulator's elements}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x32xbf16, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,16@1) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<32x8xbf16, #gpu_tile.layout<"T(4,8,2):(2@0,1@1,16@0) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,0) V(2,2):(1@1,8@0)">>
func.func @mma_k_is_spread_over_warps(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'gpu_tile.mma' op thread 32: k must not be spread over warps}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_by_an_instruction_with_scales(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma' op mma.mx.m16n8k32.f32.e4m3.e5m2 takes scales}}
  %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_by_one_without(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op mma.m16n8k32.f32.e4m3.e5m2 has no scales}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 0 : i32, instruction = "mma.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xi8, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xi8, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_block(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op block must be a multiple of 4, found 2}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 2 : i32, instruction = "mma.nv.m16n8k64.f32.e2m1.e2m1"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_negative_block(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op block must be a multiple of 1, found -1}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = -1 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_too_few_blocks(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op lhs_scale has 3 blocks or more of each of 16 rows, found 16x2}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 2 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x4xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_too_few_columns(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op rhs_scale has 1 blocks or more of each of 8 columns, found 2x4}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xf8E4M3FN, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_scale_type(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op lhs_scale is of i8, found f8E4M3FN}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>
!b = tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(8,4):(1@1,0) V(2):(1@0)">>
func.func @mma_scaled_scale_lanes(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op rhs_scale lies as T(4,8):(0,1@1) V(2):(1@0) for mma.mx.m16n8k32.f32.e4m3.e5m2, found T(8,4):(1@1,0) V(2):(1@0)}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}

// -----
!a = tensor<1x16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@2,1@1) V(4,2,2):(1@2,8@1,16@2)">>
!b = tensor<1x32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@1,1@2) V(4,2):(1@1,16@1)">>
!c = tensor<1x16x8xf32, #gpu_tile.layout<"T(4,8):(2@2,1@1) V(2,2):(1@2,8@1)">>
!s = tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>
!t = tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>
func.func @mma_scaled_batch(%a: !a, %b: !b, %c: !c, %s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.mma_scaled' op operands have two dimensions, found 1x16x8}}
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  return
}
