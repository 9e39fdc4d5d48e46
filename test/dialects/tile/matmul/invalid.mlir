// Every rule of tile.dot.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @dot_result_is_not_the_accumulator(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op result type tensor<16x16xf16> differs from the accumulator's tensor<16x16xf32>}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf16>
  return
}

// -----
func.func @dot_ranks_differ(%a: tensor<2x16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op lhs, rhs and acc must have one rank of at least 2: 2x16x16, 16x16, 16x16}}
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<2x16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_of_vectors(%a: tensor<16xf16>, %c: tensor<16xf32>) {
  // expected-error @below {{'tile.dot' op lhs, rhs and acc must have one rank of at least 2: 16, 16, 16}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (tensor<16xf16>, tensor<16xf16>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----
func.func @dot_batch_sizes_differ(%a: tensor<2x16x16xf16>, %b: tensor<3x16x16xf16>, %c: tensor<2x16x16xf32>) {
  // expected-error @below {{'tile.dot' op batch sizes differ: 2, 3, 2}}
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<2x16x16xf16>, tensor<3x16x16xf16>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
  return
}

// -----
func.func @dot_contraction_sizes_differ(%a: tensor<16x64xf16>, %b: tensor<32x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op contraction sizes differ: lhs has K=64, rhs has K=32}}
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<16x64xf16>, tensor<32x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_accumulator_has_another_shape(%a: tensor<16x64xf16>, %b: tensor<64x8xf16>, %c: tensor<8x16xf32>) {
  // expected-error @below {{'tile.dot' op accumulator must be 16x8, found 8x16}}
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<16x64xf16>, tensor<64x8xf16>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----
func.func @dot_element_types_differ(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op lhs and rhs element types differ: f16, bf16}}
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<16x16xf16>, tensor<16x16xbf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_of_unknown_element(%a: tensor<16x16xi16>, %c: tensor<16x16xi32>) {
  // expected-error @below {{'tile.dot' op no dot for i16; known: f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i8}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (tensor<16x16xi16>, tensor<16x16xi16>, tensor<16x16xi32>) -> tensor<16x16xi32>
  return
}

// -----
func.func @dot_accumulates_in_the_wrong_type(%a: tensor<16x16xbf16>, %c: tensor<16x16xbf16>) {
  // expected-error @below {{'tile.dot' op bf16 accumulates in f32, not bf16}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
  return
}

// -----
func.func @dot_accumulates_in_neither_type(%a: tensor<16x16xf16>, %c: tensor<16x16xf64>) {
  // expected-error @below {{'tile.dot' op f16 accumulates in f32 or f16, not f64}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf64>) -> tensor<16x16xf64>
  return
}

// -----
func.func @dot_precision_of_halves(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op option 'precision' is for f32 inputs, found f16}}
  %d = "tile.dot"(%a, %a, %c) {options = {precision = "tf32"}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_unknown_precision(%a: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op attribute 'options' option 'precision' must be one of 'tf32', 'ieee', found "tf16"}}
  %d = "tile.dot"(%a, %a, %a) {options = {precision = "tf16"}} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_of_an_array(%a: memref<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{expected base type 'builtin.tensor' but got 'builtin.memref'}}
  %d = "tile.dot"(%a, %a, %c) {options = {}} : (memref<16x16xf16>, memref<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_scaled_result(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op result type tensor<64x32xf16> differs from the accumulator's tensor<64x32xf32>}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf16>
  return
}

// -----
func.func @dot_scaled_rank(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<256xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op operands have two dimensions: 64x128, 128x32, 64x32, 256, 4x32}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<256xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_depth(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xi8>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op contraction sizes differ: lhs has K=128, rhs has K=256}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e2m1"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xi8>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_accumulator(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x16xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op accumulator must be 64x32, found 64x16}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x16xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x16xf32>
  return
}

// -----
func.func @dot_scaled_format(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op lhs of e2m3 is a tile of i8, found f8E4M3FN}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_narrow_sum(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf16>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op products with scales accumulate in f32, not f16}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf16>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf16>
  return
}

// -----
func.func @dot_scaled_scale_rows(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<32x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op lhs_scale has a scale per row and block of 128 numbers, found 32x4}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<32x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_scale_blocks(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<3x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op rhs_scale has a scale per column and block of 128 numbers, found 3x32}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<3x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_scale_type(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xf32>) {
  // expected-error @below {{'tile.dot_scaled' op rhs_scale is of i8 or f8E4M3FN, found f32}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xf32>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_scaled_unknown_format(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op attribute 'lhs_format' must be one of 'e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1', 'f16', 'bf16', found "e1m2"}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e1m2", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// -----
func.func @dot_by_an_unknown_instruction(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op unknown instruction 'mma.m16n8k15.f32.f16.f16'}}
  %d = "tile.dot"(%a, %a, %c) {options = {instruction = "mma.m16n8k15.f32.f16.f16"}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_by_an_instruction_for_other_types(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tile.dot' op mma.m16n8k16.f32.bf16.bf16 multiplies bf16, bf16 and f32, found f16, f16, f32}}
  %d = "tile.dot"(%a, %a, %c) {options = {instruction = "mma.m16n8k16.f32.bf16.bf16"}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// -----
func.func @dot_of_parts_of_an_instruction(%a: tensor<64x16xf16>, %b: tensor<16x40xf16>, %c: tensor<64x40xf32>) {
  // expected-error @below {{'tile.dot' op wgmma.m64n16k16.f32.f16.f16 does 64x16x16 at once, which do not make up 64x40x16}}
  %d = "tile.dot"(%a, %b, %c) {options = {instruction = "wgmma.m64n16k16.f32.f16.f16"}} : (tensor<64x16xf16>, tensor<16x40xf16>, tensor<64x40xf32>) -> tensor<64x40xf32>
  return
}

// -----
func.func @dot_by_an_instruction_with_scales(%a: tensor<128x32xf8E4M3FN>, %b: tensor<32x16xf8E4M3FN>, %c: tensor<128x16xf32>) {
  // expected-error @below {{'tile.dot' op tcgen05.mx.m128n16k32.f32.e4m3.e4m3 takes scales}}
  %d = "tile.dot"(%a, %b, %c) {options = {instruction = "tcgen05.mx.m128n16k32.f32.e4m3.e4m3"}} : (tensor<128x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>, tensor<128x16xf32>) -> tensor<128x16xf32>
  return
}

// -----
func.func @dot_scaled_by_the_instruction_of_another_format(%a: tensor<64x128xi8>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) {
  // expected-error @below {{'tile.dot_scaled' op mma.mx.m16n8k32.f32.e3m2.e5m2 multiplies e3m2 by e5m2, found e2m3 by e5m2}}
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m3", options = {instruction = "mma.mx.m16n8k32.f32.e3m2.e5m2"}, rhs_format = "e5m2"} : (tensor<64x128xi8>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}
