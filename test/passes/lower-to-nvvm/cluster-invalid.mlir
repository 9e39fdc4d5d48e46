// Kernels whose clusters cannot be.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

func.func @each_its_program() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  // expected-error @below {{the launch of a persistent kernel, or of clusters, has one dimension: a program's number comes from gpu_tile.cta_id or gpu_tile.cluster_id}}
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  return
}

// -----
func.func @too_little_room() attributes {tile.kernel, tile.stripes = 8 : i32} {
  %one = arith.constant dense<1.0> : tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
  %all = "gpu_tile.alloc"() {options = {offset = 64 : i32}} : () -> !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>
  // expected-error @below {{the buffer has 4 elements for the 8 of a cluster}}
  "gpu_tile.cluster_store"(%one, %all) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
// expected-error @below {{a cluster has 1, 2, 4, 8 or 16 CTAs, found 32}}
func.func @too_many_parts() attributes {tile.kernel, tile.stripes = 32 : i32} {
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
// expected-error @below {{a cluster has 1, 2, 4, 8 or 16 CTAs, found 3}}
func.func @three_parts() attributes {tile.kernel, tile.stripes = 3 : i32} {
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}
