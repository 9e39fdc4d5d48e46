// Both products of slots are issued first, both of registers last, and each is waited for where its
// sum is read. The numbers of a row come through a ring of their own.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,delay-waits --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!v = memref<?xf32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @gradients
// CHECK: name = "load"
// CHECK: scf.for
// CHECK-COUNT-3: gpu_tile.ring_wait
// CHECK: %[[S:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: %[[W:.*]] = "gpu_tile.wgmma"(
// CHECK: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 1 : i32}
// CHECK: math.exp2
// CHECK: "gpu_tile.buffer_load"
// CHECK: "gpu_tile.wgmma_meanwhile"
// CHECK: "gpu_tile.wgmma_wait"(%[[W]]) {pending = 0 : i32}
// CHECK-COUNT-2: arith.truncf
// CHECK: %[[V:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: %[[K:.*]] = "gpu_tile.wgmma"(
// CHECK: "gpu_tile.wgmma_wait"(%[[V]]) {pending = 1 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"
// CHECK: "gpu_tile.wgmma_wait"(%[[K]]) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"
func.func @gradients(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %off: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}},
                     %dk: memref<?x64xf32, strided<[64, 1]>>, %dv: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sums:2 = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero, %sv = %zero) -> (!c, !c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %o = "tile.load"(%off, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<64xf32>
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %gt = "tile.transpose"(%grad) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = math.exp2 %s : !c
    %pn = arith.truncf %p : !c to !a
    %nv = "tile.dot"(%pn, %grad, %sv) {options = {}} : (!a, !a, !c) -> !c
    %w = "tile.dot"(%key, %gt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %os = "tile.broadcast"(%o) {dims = array<i32: 1>} : (tensor<64xf32>) -> !c
    %wo = arith.subf %w, %os : !c
    %d = arith.mulf %p, %wo : !c
    %dn = arith.truncf %d : !c to !a
    %nk = "tile.dot"(%dn, %query, %sk) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk, %nv : !c, !c
  }
  "tile.store"(%sums#0, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  "tile.store"(%sums#1, %dv, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
