// Products with scales get the widest instruction that reads scales.
// RUN: tilec opt %s --passes multiply-out --target sm_100a --num-warps 4 | filecheck %s

// CHECK: instruction = "tcgen05.mx.m128n256k32.f32.e4m3.e5m2"
func.func @eight(%a: tensor<128x128xf8E4M3FN>, %b: tensor<128x256xf8E5M2>, %c: tensor<128x256xf32>, %s: tensor<128x4xi8>, %t: tensor<4x256xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<128x128xf8E4M3FN>, tensor<128x256xf8E5M2>, tensor<128x256xf32>, tensor<128x4xi8>, tensor<4x256xi8>) -> tensor<128x256xf32>
  return
}

// CHECK: instruction = "tcgen05.mx.m128n128k64.f32.e2m1.e2m1"
func.func @four(%a: tensor<128x64xi8>, %b: tensor<64x128xi8>, %c: tensor<128x128xf32>, %s: tensor<128x4xi8>, %t: tensor<4x128xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {}, rhs_format = "e2m1"} : (tensor<128x64xi8>, tensor<64x128xi8>, tensor<128x128xf32>, tensor<128x4xi8>, tensor<4x128xi8>) -> tensor<128x128xf32>
  return
}

// Scales that are floats, one per 16.
// CHECK: instruction = "tcgen05.nv.m128n128k64.f32.e2m1.e2m1"
func.func @nv(%a: tensor<128x64xi8>, %b: tensor<64x128xi8>, %c: tensor<128x128xf32>, %s: tensor<128x8xf8E4M3FN>, %t: tensor<8x128xf8E4M3FN>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {}, rhs_format = "e2m1"} : (tensor<128x64xi8>, tensor<64x128xi8>, tensor<128x128xf32>, tensor<128x8xf8E4M3FN>, tensor<8x128xf8E4M3FN>) -> tensor<128x128xf32>
  return
}

// Too few columns for a copy of their scales.
// CHECK-LABEL: @narrow
// CHECK: "tile.dot"({{.*}}tensor<128x128xbf16>, tensor<128x64xbf16>
func.func @narrow(%a: tensor<128x128xf8E4M3FN>, %b: tensor<128x64xf8E5M2>, %c: tensor<128x64xf32>, %s: tensor<128x4xi8>, %t: tensor<4x64xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {}, rhs_format = "e5m2"} : (tensor<128x128xf8E4M3FN>, tensor<128x64xf8E5M2>, tensor<128x64xf32>, tensor<128x4xi8>, tensor<4x64xi8>) -> tensor<128x64xf32>
  return
}

// Four bits beside eight lie padded where the instruction reads them: they become eight.
// CHECK-LABEL: @beside
// CHECK: %[[WIDE:.*]] = arith.truncf %{{.*}} : tensor<128x128xbf16> to tensor<128x128xf8E4M3FN>
// CHECK: "tile.dot_scaled"(%{{.*}}, %[[WIDE]], {{.*}}) {lhs_format = "e5m2", options = {instruction = "tcgen05.mx.m128n128k32.f32.e5m2.e4m3"}, rhs_format = "e4m3"}
func.func @beside(%a: tensor<128x128xf8E5M2>, %b: tensor<64x128xi8>, %c: tensor<128x128xf32>, %s: tensor<128x4xi8>, %t: tensor<4x128xi8>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e5m2", options = {}, rhs_format = "e2m1"} : (tensor<128x128xf8E5M2>, tensor<64x128xi8>, tensor<128x128xf32>, tensor<128x4xi8>, tensor<4x128xi8>) -> tensor<128x128xf32>
  return
}
