// Dots of every legal combination of element types, of batches and odd sizes.
// RUN: %roundtrip

// CHECK-LABEL: @half_with_f32_accumulator
func.func @half_with_f32_accumulator(%a: tensor<128x64xf16>, %b: tensor<64x128xf16>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  // CHECK: "tile.dot"(%{{.*}}, %{{.*}}, %{{.*}}) {options = {}} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %d : tensor<128x128xf32>
}

// CHECK-LABEL: @half_with_half_accumulator_of_odd_sizes
func.func @half_with_half_accumulator_of_odd_sizes(%a: tensor<17x3xf16>, %b: tensor<3x5xf16>, %c: tensor<17x5xf16>) -> tensor<17x5xf16> {
  // CHECK: -> tensor<17x5xf16>
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<17x3xf16>, tensor<3x5xf16>, tensor<17x5xf16>) -> tensor<17x5xf16>
  return %d : tensor<17x5xf16>
}

// CHECK-LABEL: @f32_as_tf32
func.func @f32_as_tf32(%a: tensor<16x8xf32>, %b: tensor<8x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: {options = {precision = "tf32"}}
  %d = "tile.dot"(%a, %b, %c) {options = {precision = "tf32"}} : (tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %d : tensor<16x8xf32>
}

// CHECK-LABEL: @mixed_eight_bit_floats
func.func @mixed_eight_bit_floats(%a: tensor<16x32xf8E4M3FN>, %b: tensor<32x8xf8E5M2>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  // CHECK: (tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2>, tensor<16x8xf32>)
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<16x32xf8E4M3FN>, tensor<32x8xf8E5M2>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return %d : tensor<16x8xf32>
}

// CHECK-LABEL: @batched_integers
func.func @batched_integers(%a: tensor<2x3x16x32xi8>, %b: tensor<2x3x32x8xi8>, %c: tensor<2x3x16x8xi32>) -> tensor<2x3x16x8xi32> {
  // CHECK: -> tensor<2x3x16x8xi32>
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<2x3x16x32xi8>, tensor<2x3x32x8xi8>, tensor<2x3x16x8xi32>) -> tensor<2x3x16x8xi32>
  return %d : tensor<2x3x16x8xi32>
}

// CHECK-LABEL: @double_and_bfloat
func.func @double_and_bfloat(%a: tensor<8x4xf64>, %b: tensor<4x8xf64>, %c: tensor<8x8xf64>, %x: tensor<16x16xbf16>, %z: tensor<16x16xf32>) {
  // CHECK: tensor<8x8xf64>) -> tensor<8x8xf64>
  %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<8x4xf64>, tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
  // CHECK: (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %e = "tile.dot"(%x, %x, %z) {options = {}} : (tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return
}

// CHECK-LABEL: @scales_of_blocks
func.func @scales_of_blocks(%a: tensor<64x128xf8E4M3FN>, %b: tensor<64x32xi8>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) -> tensor<64x32xf32> {
  // CHECK: "tile.dot_scaled"(%{{.*}}) {lhs_format = "e4m3", options = {}, rhs_format = "e2m1"} : (tensor<64x128xf8E4M3FN>, tensor<64x32xi8>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e2m1"} : (tensor<64x128xf8E4M3FN>, tensor<64x32xi8>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}
