// Without an instruction for scales the operands are multiplied by them, in bf16.
// RUN: tilec opt %s --passes multiply-out --target sm_90a --num-warps 4 | filecheck %s

// A byte is an exponent of 2, bf16's own but for its ends; each scale serves a block of 32.
// CHECK-LABEL: @eight
// CHECK: arith.extf %{{.*}} : tensor<64x128xf8E4M3FN> to tensor<64x128xbf16>
// CHECK: arith.shli
// CHECK: arith.bitcast %{{.*}} : tensor<64x4xi16> to tensor<64x4xbf16>
// CHECK: "tile.broadcast"(%{{.*}}) {dims = array<i32: 0, 1>} : (tensor<64x4xbf16>) -> tensor<64x4x32xbf16>
// CHECK: arith.mulf %{{.*}} : tensor<64x128xbf16>
// CHECK: arith.mulf %{{.*}} : tensor<128x32xbf16>
// CHECK: "tile.dot"({{.*}}) {options = {}} : (tensor<64x128xbf16>, tensor<128x32xbf16>, tensor<64x32xf32>)
func.func @eight(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf8E4M3FN>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// The two numbers of a byte follow each other along k.
// CHECK-LABEL: @four
// CHECK: "tile.join"(%{{.*}}) {axis = 2 : i32} : (tensor<64x64x1xi8>, tensor<64x64x1xi8>) -> tensor<64x64x2xi8>
// CHECK: "tile.reshape"(%{{.*}}) : (tensor<64x64x2xi8>) -> tensor<64x128xi8>
// CHECK: "tile.join"(%{{.*}}) {axis = 1 : i32} : (tensor<64x1x32xi8>, tensor<64x1x32xi8>) -> tensor<64x2x32xi8>
// CHECK: "tile.dot"({{.*}}) {options = {}} : (tensor<64x128xbf16>, tensor<128x32xbf16>, tensor<64x32xf32>)
func.func @four(%a: tensor<64x64xi8>, %b: tensor<64x32xi8>, %c: tensor<64x32xf32>, %s: tensor<64x8xf8E4M3FN>, %t: tensor<8x32xf8E4M3FN>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {}, rhs_format = "e2m1"} : (tensor<64x64xi8>, tensor<64x32xi8>, tensor<64x32xf32>, tensor<64x8xf8E4M3FN>, tensor<8x32xf8E4M3FN>) -> tensor<64x32xf32>
  return
}

// Beside f16 the product is of f16, rounded from f32; scales that are all 1 are left out.
// CHECK-LABEL: @half
// CHECK-SAME: (%[[A:.*]]: tensor<64x128xf16>
// CHECK-NOT: tensor<64x128xbf16>
// CHECK: arith.mulf %{{.*}} : tensor<128x32xbf16>
// CHECK: arith.truncf %{{.*}} : tensor<128x32xf32> to tensor<128x32xf16>
// CHECK: "tile.dot"(%[[A]], {{.*}}) {options = {}} : (tensor<64x128xf16>, tensor<128x32xf16>, tensor<64x32xf32>)
func.func @half(%a: tensor<64x128xf16>, %b: tensor<128x32xf8E5M2>, %c: tensor<64x32xf32>, %t: tensor<4x32xi8>) attributes {tile.kernel} {
  %s = arith.constant dense<127> : tensor<64x4xi8>
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "f16", options = {}, rhs_format = "e5m2"} : (tensor<64x128xf16>, tensor<128x32xf8E5M2>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// Other scales of f16 are multiplied in f32.
// CHECK-LABEL: @half_scaled
// CHECK: arith.extf %{{.*}} : tensor<64x128xf16> to tensor<64x128xf32>
// CHECK: arith.extf %{{.*}} : tensor<64x128xbf16> to tensor<64x128xf32>
// CHECK: arith.mulf %{{.*}} : tensor<64x128xf32>
// CHECK: arith.truncf %{{.*}} : tensor<64x128xf32> to tensor<64x128xf16>
func.func @half_scaled(%a: tensor<64x128xf16>, %b: tensor<128x32xf16>, %c: tensor<64x32xf32>, %s: tensor<64x4xi8>, %t: tensor<4x32xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "f16", options = {}, rhs_format = "f16"} : (tensor<64x128xf16>, tensor<128x32xf16>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}

// A constant scale of 2 stays.
// CHECK-LABEL: @twice
// CHECK: arith.mulf %{{.*}} : tensor<64x128xf32>
func.func @twice(%a: tensor<64x128xf16>, %b: tensor<128x32xf16>, %c: tensor<64x32xf32>) attributes {tile.kernel} {
  %s = arith.constant dense<128> : tensor<64x4xi8>
  %t = arith.constant dense<127> : tensor<4x32xi8>
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "f16", options = {}, rhs_format = "f16"} : (tensor<64x128xf16>, tensor<128x32xf16>, tensor<64x32xf32>, tensor<64x4xi8>, tensor<4x32xi8>) -> tensor<64x32xf32>
  return
}
