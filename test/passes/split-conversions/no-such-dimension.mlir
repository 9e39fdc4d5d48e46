// A layout may name no dimension that its tile does not have.
// RUN: tilec opt %s --passes split-conversions --target sm_80 --num-warps 1 --split-input-file --verify-diagnostics

func.func @of_threads(%x: tensor<16x32xf16, #gpu_tile.layout<"T(4,8):(2@2,1@0) V(8,2):(1@1,8@0)">>) attributes {tile.num_warps = 1 : i32} {
  // expected-error @below {{'gpu_tile.convert_layout' op: tensor<16x32xf16, #gpu_tile.layout<"T(4,8):(2@2,1@0) V(8,2):(1@1,8@0)">> has no dimension 2}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<16x32xf16, #gpu_tile.layout<"T(4,8):(2@2,1@0) V(8,2):(1@1,8@0)">>) -> tensor<16x32xf16, #gpu_tile.layout<"T(32):(1@1) V(16):(1@0)">>
  return
}

// -----
func.func @of_values(%x: tensor<16x32xf16, #gpu_tile.layout<"T(32):(1@1) V(16):(1@0)">>) attributes {tile.num_warps = 1 : i32} {
  // expected-error @below {{V(8,2):(1@9,8@0)">> has no dimension 9}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<16x32xf16, #gpu_tile.layout<"T(32):(1@1) V(16):(1@0)">>) -> tensor<16x32xf16, #gpu_tile.layout<"T(4,8):(8@1,1@0) V(8,2):(1@9,8@0)">>
  return
}
