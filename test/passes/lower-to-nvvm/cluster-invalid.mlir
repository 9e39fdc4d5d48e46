// Kernels whose clusters cannot be.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

func.func @each_its_program() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  // expected-error @below {{the launch of a persistent kernel, or of clusters, has one dimension: a program's number comes from gpu_tile.cta_id or gpu_tile.cluster_id}}
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  return
}
