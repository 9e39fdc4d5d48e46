// The last product's left operand is computed part by part, and so it comes in two groups, which stay
// where they are; the others run beside each other all the same.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots,overlap-mma,delay-waits --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @groups
// CHECK: name = "load"
// CHECK: scf.for
// CHECK: %[[S:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: %[[W:.*]] = "gpu_tile.wgmma"(
// CHECK: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 1 : i32}
// CHECK: math.exp2
// CHECK: "gpu_tile.wgmma_wait"(%[[W]]) {pending = 0 : i32}
// CHECK: %[[V:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: "gpu_tile.buffer_load"
// CHECK: %[[K:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: "gpu_tile.buffer_load"
// CHECK: %[[L:.*]] = "gpu_tile.wgmma"({{.*}}, %[[K]])
// CHECK-NOT: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%[[V]]) {pending = 2 : i32}
// CHECK: "gpu_tile.wgmma_wait"(%[[L]]) {pending = 0 : i32}
func.func @groups(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %dk: memref<?x64xf32, strided<[64, 1]>>, %dv: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %half = arith.constant dense<0.5> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sums:2 = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero, %sv = %zero) -> (!c, !c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %gt = "tile.transpose"(%grad) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = math.exp2 %s : !c
    %w = "tile.dot"(%key, %gt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %d = arith.mulf %p, %w : !c
    %dn = arith.truncf %d : !c to !a
    %nv = "tile.dot"(%dn, %grad, %sv) {options = {}} : (!a, !a, !c) -> !c
    %wide = arith.extf %query : !a to !c
    %less = arith.mulf %wide, %half : !c
    %aged = arith.truncf %less : !c to !a
    %at = "tile.transpose"(%aged) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %nk = "tile.dot"(%at, %grad, %sk) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk, %nv : !c, !c
  }
  "tile.store"(%sums#0, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  "tile.store"(%sums#1, %dv, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
