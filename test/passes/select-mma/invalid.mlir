// What three warpgroups cannot share.
// RUN: tilec opt %s --passes select-mma --target sm_90a --num-warps 12 --split-input-file --verify-diagnostics

func.func @no_thirds(%x: tensor<128x64xbf16>, %y: tensor<64x64xbf16>, %z: tensor<128x64xf32>) attributes {tile.kernel} {
  // expected-error @below {{num_warps=12 was asked for, but 128x64 is not made of m64 parts for 12 warps}}
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
  return
}

// -----

func.func @no_depth(%x: tensor<192x8xbf16>, %y: tensor<8x64xbf16>, %z: tensor<192x64xf32>) attributes {tile.kernel} {
  // expected-error @below {{num_warps=12 was asked for, but k = 8 is no multiple of the instruction's 16}}
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<192x8xbf16>, tensor<8x64xbf16>, tensor<192x64xf32>) -> tensor<192x64xf32>
  return
}

// -----

// expected-error @below {{num_warps=12 was asked for, but it multiplies nothing}}
func.func @no_product(%x: tensor<192x64xbf16>) attributes {tile.kernel} {
  return
}
