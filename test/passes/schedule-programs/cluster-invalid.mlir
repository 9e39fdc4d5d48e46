// Clusters that cannot be had.
// RUN: tilec opt %s --passes schedule-programs --target sm_90a --num-warps 1 --split-input-file --verify-diagnostics

// expected-error @below {{a cluster has 1, 2, 4 or 8 CTAs, found 3 x 1 x 1}}
func.func @three() attributes {tile.kernel, tile.cluster = array<i32: 3>} {
  return
}

// -----
// expected-error @below {{a cluster has 1, 2, 4 or 8 CTAs, found 4 x 4 x 1}}
func.func @sixteen() attributes {tile.kernel, tile.cluster = array<i32: 4, 4>} {
  return
}

// -----
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!m = tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @counts(%a: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.cluster = array<i32: 1, 2>} {
  %x = arith.constant dense<1> : !i
  %m = arith.constant dense<true> : !m
  // expected-error @below {{cluster=(1, 2, 1) was asked for, but 'tile.atomic_rmw' would run twice where the grid is no multiple of it}}
  %old = "tile.atomic_rmw"(%x, %a, %m, %x) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (!i, memref<?xi32, strided<[1]>>, !m, !i) -> !i
  return
}

// -----
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!v = memref<?xi32, strided<[1]>>
func.func @in_place(%a: !v) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  // expected-error @below {{cluster=(2, 1, 1) was asked for, but a CTA past the end of the grid would read this while its neighbour writes it}}
  %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!v, index) -> !i
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!i, !v, index) -> ()
  return
}
