// Kernels that have no clusters.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

// expected-error @below {{only persistent kernels have clusters}}
func.func @each_its_program() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  return
}

// -----
// expected-error @below {{tile.cluster must be one to three i32, found "two"}}
func.func @two() attributes {tile.kernel, tile.persistent = true, tile.cluster = "two"} {
  return
}
