// What no instruction of the target does.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file --verify-diagnostics

!m = memref<?xi32, strided<[1]>>
!t = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @cluster_scope(%x: !m) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
  %i = "tile.iota"() {axis = 0 : i32} : () -> !t
  // expected-error @below {{scope 'cluster' needs thread block clusters, which sm_80 does not have}}
  %a = "tile.atomic_rmw"(%i, %x, %ok, %i) {kind = "addi", options = {}, order = "relaxed", scope = "cluster"} : (!t, !m, tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>, !t) -> !t
  return
}

// -----
!m = memref<?xi8, strided<[1]>>
!t = tensor<32xi8, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @bytes(%x: !m) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
  %i = "tile.iota"() {axis = 0 : i32} : () -> !t
  // expected-error @below {{no atomics on i8; elements must have 16, 32 or 64 bits}}
  %a = "tile.atomic_cas"(%i, %i, %x, %ok, %i) {order = "relaxed", scope = "gpu"} : (!t, !t, !m, tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>, !t) -> !t
  return
}
