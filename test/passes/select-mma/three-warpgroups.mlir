// Three warpgroups: rows where they are three times 64, else columns; no wider than 128 registers allow.
// RUN: tilec opt %s --passes select-mma --target sm_90a --num-warps 12 --split-input-file | filecheck %s

// CHECK-LABEL: @rows
// CHECK: instruction = "wgmma.m64n160k16.f32.bf16.bf16"
func.func @rows(%x: tensor<192x64xbf16>, %y: tensor<64x160xbf16>, %z: tensor<192x160xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<192x64xbf16>, tensor<64x160xbf16>, tensor<192x160xf32>) -> tensor<192x160xf32>
  return
}

// CHECK-LABEL: @columns
// CHECK: instruction = "wgmma.m64n64k16.f32.bf16.bf16"
func.func @columns(%x: tensor<128x64xbf16>, %y: tensor<64x192xbf16>, %z: tensor<128x192xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x64xbf16>, tensor<64x192xbf16>, tensor<128x192xf32>) -> tensor<128x192xf32>
  return
}

// CHECK-LABEL: @too_wide
// CHECK: instruction = "wgmma.m64n128k16.f32.bf16.bf16"
func.func @too_wide(%x: tensor<192x64xbf16>, %y: tensor<64x256xbf16>, %z: tensor<192x256xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<192x64xbf16>, tensor<64x256xbf16>, tensor<192x256xf32>) -> tensor<192x256xf32>
  return
}

// 120 columns would begin inside a panel of 16.
// CHECK-LABEL: @panels
// CHECK: instruction = "wgmma.m64n80k16.f32.bf16.bf16"
func.func @panels(%x: tensor<192x64xbf16>, %y: tensor<64x240xbf16>, %z: tensor<192x240xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<192x64xbf16>, tensor<64x240xbf16>, tensor<192x240xf32>) -> tensor<192x240xf32>
  return
}
