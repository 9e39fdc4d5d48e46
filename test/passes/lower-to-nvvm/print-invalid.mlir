// What vprintf cannot take.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file --verify-diagnostics

func.func @fp8(%x: f8E5M2) attributes {tile.kernel} {
  // expected-error @below {{cannot print f8E5M2; cast it to float32 first}}
  "tile.print"(%x) {format = "{}", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f8E5M2) -> ()
  return
}
