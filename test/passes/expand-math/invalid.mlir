// Types without an expansion.
// RUN: tilec opt %s --split-input-file --verify-diagnostics --passes expand-math

llvm.func @too_wide(%x: f128) -> f128 {
  // expected-error @below {{math.exp has no expansion for f128; known types: f16, bf16, f32, f64}}
  %0 = math.exp %x : f128
  llvm.return %0 : f128
}

// -----
func.func @two_dimensions(%x: vector<2x2xf32>) -> vector<2x2xf32> {
  // expected-error @below {{math.exp has no expansion for vector<2x2xf32>}}
  %0 = math.exp %x : vector<2x2xf32>
  return %0 : vector<2x2xf32>
}
