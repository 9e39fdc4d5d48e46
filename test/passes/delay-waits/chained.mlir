// The second product takes the first's sum: each is waited for behind its issue, and no register
// operand is written while another product runs (ptxas would serialise them).
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,delay-waits --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @chained
// CHECK: name = "load"
// CHECK: scf.for
// CHECK: %[[S:.*]] = "gpu_tile.wgmma"(
// CHECK-NEXT: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 0 : i32}
// CHECK: arith.truncf
// CHECK: %[[V:.*]] = "gpu_tile.wgmma"(
// CHECK-NEXT: "gpu_tile.wgmma_wait"(%[[V]]) {pending = 0 : i32}
// CHECK: arith.truncf
// CHECK: %[[K:.*]] = "gpu_tile.wgmma"(
// CHECK-NEXT: "gpu_tile.wgmma_wait"(%[[K]]) {pending = 0 : i32}
// CHECK-NOT: gpu_tile.wgmma_meanwhile
func.func @chained(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %dk: memref<?x64xf32, strided<[64, 1]>>, %dv: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sums:2 = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero, %sv = %zero) -> (!c, !c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = arith.truncf %s : !c to !a
    %nv = "tile.dot"(%p, %grad, %sv) {options = {}} : (!a, !a, !c) -> !c
    %d = arith.truncf %nv : !c to !a
    %nk = "tile.dot"(%d, %query, %sk) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk, %nv : !c, !c
  }
  "tile.store"(%sums#0, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  "tile.store"(%sums#1, %dv, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
