// The warpgroup instruction of each type, as wide as the tile allows.
// RUN: tilec opt %s --passes select-mma --target sm_90a --num-warps 4 | filecheck %s

// CHECK: instruction = "wgmma.m64n128k16.f32.bf16.bf16"
func.func @d0(%x: tensor<64x64xbf16>, %y: tensor<64x128xbf16>, %z: tensor<64x128xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x64xbf16>, tensor<64x128xbf16>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return
}

// CHECK: instruction = "wgmma.m64n128k16.f16.f16.f16"
func.func @d1(%x: tensor<64x64xf16>, %y: tensor<64x128xf16>, %z: tensor<64x128xf16>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x64xf16>, tensor<64x128xf16>, tensor<64x128xf16>) -> tensor<64x128xf16>
  return
}

// CHECK: instruction = "wgmma.m64n128k8.f32.tf32.tf32"
func.func @d2(%x: tensor<64x32xf32>, %y: tensor<32x128xf32>, %z: tensor<64x128xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {precision = "tf32"}} : (tensor<64x32xf32>, tensor<32x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return
}

// CHECK: instruction = "wgmma.m64n128k32.f32.e4m3.e5m2"
func.func @d3(%x: tensor<64x128xf8E4M3FN>, %y: tensor<128x128xf8E5M2>, %z: tensor<64x128xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x128xf8E4M3FN>, tensor<128x128xf8E5M2>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return
}

// CHECK: instruction = "wgmma.m64n128k32.s32.s8.s8"
func.func @d4(%x: tensor<64x128xi8>, %y: tensor<128x128xi8>, %z: tensor<64x128xi32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x128xi8>, tensor<128x128xi8>, tensor<64x128xi32>) -> tensor<64x128xi32>
  return
}

// Any multiple of 8 columns.
// CHECK: instruction = "wgmma.m64n24k16.f32.bf16.bf16"
func.func @odd_n(%x: tensor<64x16xbf16>, %y: tensor<16x24xbf16>, %z: tensor<64x24xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x16xbf16>, tensor<16x24xbf16>, tensor<64x24xf32>) -> tensor<64x24xf32>
  return
}

// At most 256 columns each.
// CHECK: instruction = "wgmma.m64n256k16.f32.bf16.bf16"
func.func @wide(%x: tensor<128x16xbf16>, %y: tensor<16x512xbf16>, %z: tensor<128x512xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x16xbf16>, tensor<16x512xbf16>, tensor<128x512xf32>) -> tensor<128x512xf32>
  return
}

// Too few rows.
// CHECK: instruction = "mma.m16n8k16.f32.bf16.bf16"
func.func @short(%x: tensor<32x16xbf16>, %y: tensor<16x64xbf16>, %z: tensor<32x64xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<32x16xbf16>, tensor<16x64xbf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return
}

// k is no multiple of the instruction's.
// CHECK: instruction = "mma.m16n8k16.f32.bf16.bf16"
func.func @shallow(%x: tensor<64x8xbf16>, %y: tensor<8x64xbf16>, %z: tensor<64x64xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x8xbf16>, tensor<8x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return
}

// Exact f32 has no tensor core.
// CHECK: instruction = "fma.f32"
func.func @exact(%x: tensor<64x16xf32>, %y: tensor<16x64xf32>, %z: tensor<64x64xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return
}
