// On 12.x mma.sync reads the scales, of tiles of any m and n.
// RUN: tilec opt %s --passes multiply-out --target sm_120a --num-warps 4 | filecheck %s
// RUN: tilec opt %s --passes multiply-out --target sm_121a --num-warps 4 | filecheck %s

// CHECK-LABEL: @eight
// CHECK: instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"
func.func @eight(%a: tensor<48x128xf8E4M3FN>, %b: tensor<128x24xf8E5M2>, %c: tensor<48x24xf32>, %s: tensor<48x4xi8>, %t: tensor<4x24xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<48x128xf8E4M3FN>, tensor<128x24xf8E5M2>, tensor<48x24xf32>, tensor<48x4xi8>, tensor<4x24xi8>) -> tensor<48x24xf32>
  return
}

// Numbers of 6 bits go in as they are.
// CHECK-LABEL: @six
// CHECK-NOT: arith
// CHECK: instruction = "mma.mx.m16n8k32.f32.e3m2.e2m3"
func.func @six(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>, %s: tensor<16x1xi8>, %t: tensor<1x8xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e3m2", options = {}, rhs_format = "e2m3"} : (tensor<16x32xi8>, tensor<32x8xi8>, tensor<16x8xf32>, tensor<16x1xi8>, tensor<1x8xi8>) -> tensor<16x8xf32>
  return
}

// CHECK-LABEL: @four
// CHECK: instruction = "mma.mx.m16n8k64.f32.e2m1.e2m1"
func.func @four(%a: tensor<16x64xi8>, %b: tensor<64x8xi8>, %c: tensor<16x8xf32>, %s: tensor<16x4xi8>, %t: tensor<4x8xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {}, rhs_format = "e2m1"} : (tensor<16x64xi8>, tensor<64x8xi8>, tensor<16x8xf32>, tensor<16x4xi8>, tensor<4x8xi8>) -> tensor<16x8xf32>
  return
}

// CHECK-LABEL: @nv
// CHECK: instruction = "mma.nv.m16n8k64.f32.e2m1.e2m1"
func.func @nv(%a: tensor<16x64xi8>, %b: tensor<64x8xi8>, %c: tensor<16x8xf32>, %s: tensor<16x8xf8E4M3FN>, %t: tensor<8x8xf8E4M3FN>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {}, rhs_format = "e2m1"} : (tensor<16x64xi8>, tensor<64x8xi8>, tensor<16x8xf32>, tensor<16x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>) -> tensor<16x8xf32>
  return
}

// Four bits beside eight: a byte each, from the third bit on, which is an e2m3.
// CHECK-LABEL: @beside
// CHECK: arith.shli %{{.*}} : tensor<32x8xi8>
// CHECK: arith.andi %{{.*}} : tensor<32x8xi8>
// CHECK: arith.shrui %{{.*}} : tensor<32x8xi8>
// CHECK: arith.andi %{{.*}} : tensor<32x8xi8>
// CHECK: %[[JOINED:.*]] = "tile.join"(%{{.*}}) {axis = 1 : i32}
// CHECK: %[[BYTES:.*]] = "tile.reshape"(%[[JOINED]]) : {{.*}} -> tensor<64x8xi8>
// CHECK: "tile.dot_scaled"(%{{.*}}, %[[BYTES]], {{.*}}) {lhs_format = "e5m2", options = {instruction = "mma.mx.m16n8k32.f32.e5m2.e2m3"}, rhs_format = "e2m3"}
func.func @beside(%a: tensor<16x64xf8E5M2>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>, %s: tensor<16x2xi8>, %t: tensor<2x8xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e5m2", options = {}, rhs_format = "e2m1"} : (tensor<16x64xf8E5M2>, tensor<32x8xi8>, tensor<16x8xf32>, tensor<16x2xi8>, tensor<2x8xi8>) -> tensor<16x8xf32>
  return
}

// No instruction has bf16 operands, or a block of 16 with exponents for scales.
// CHECK-LABEL: @half
// CHECK: "tile.dot"({{.*}}tensor<16x64xbf16>, tensor<64x8xbf16>
func.func @half(%a: tensor<16x64xbf16>, %b: tensor<64x8xf8E5M2>, %c: tensor<16x8xf32>, %s: tensor<16x2xi8>, %t: tensor<2x8xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "bf16", options = {}, rhs_format = "e5m2"} : (tensor<16x64xbf16>, tensor<64x8xf8E5M2>, tensor<16x8xf32>, tensor<16x2xi8>, tensor<2x8xi8>) -> tensor<16x8xf32>
  return
}

// CHECK-LABEL: @short_blocks
// CHECK: "tile.dot"({{.*}}tensor<16x64xbf16>, tensor<64x8xbf16>
func.func @short_blocks(%a: tensor<16x64xf8E5M2>, %b: tensor<64x8xf8E5M2>, %c: tensor<16x8xf32>, %s: tensor<16x4xi8>, %t: tensor<4x8xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e5m2", options = {}, rhs_format = "e5m2"} : (tensor<16x64xf8E5M2>, tensor<64x8xf8E5M2>, tensor<16x8xf32>, tensor<16x4xi8>, tensor<4x8xi8>) -> tensor<16x8xf32>
  return
}
