// What 8-bit floats cannot do.
// RUN: tilec opt %s --split-input-file --verify-diagnostics --passes convert-floats

func.func @arithmetic(%x: f8E5M2) -> f8E5M2 {
  // expected-error @below {{arith.addf has no form for f8E5M2}}
  %0 = arith.addf %x, %x : f8E5M2
  return %0 : f8E5M2
}

// -----
func.func @different_elements() -> vector<2xf8E4M3FN> {
  // expected-error @below {{constant vector of f8E4M3FN whose elements differ}}
  %0 = arith.constant dense<[1.0, 2.0]> : vector<2xf8E4M3FN>
  return %0 : vector<2xf8E4M3FN>
}

// -----
func.func @rounding(%x: f32) -> f8E4M3FN {
  // expected-error @below {{arith.truncf to f8E4M3FN rounds to nearest even only}}
  %0 = arith.truncf %x toward_zero : f32 to f8E4M3FN
  return %0 : f8E4M3FN
}
