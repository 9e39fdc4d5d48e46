// A constraint names a register that cannot hold the element.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file --verify-diagnostics

!f = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @wide_register_for_a_float() attributes {tile.kernel} {
  %f = arith.constant dense<1.0> : !f
  // expected-error @below {{constraint 'l' is a register of 64 bits, which does not hold f32}}
  %y = "tile.inline_ptx"(%f) {text = "mov.b64 $0, $1;", constraints = "=l,l", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!f) -> !f
  return
}

// -----
func.func @narrow_register_for_an_integer(%n: i64) attributes {tile.kernel} {
  // expected-error @below {{constraint 'r' is a register of 32 bits, which does not hold i64}}
  %y = "tile.inline_ptx"(%n) {text = "mov.b32 $0, $1;", constraints = "=r,r", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i64) -> i64
  return
}
