// What only stores the second product's sum comes behind the issue of the third, which does not need
// it: both run meanwhile. Not so where the store would pass a load of an array.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots,overlap-mma,delay-waits --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @late
// CHECK: name = "load"
// CHECK: scf.for
// CHECK: %[[S:.*]] = "gpu_tile.wgmma"(
// CHECK: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 0 : i32}
// CHECK: %[[V:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: tile.store
// CHECK: %[[K:.*]] = "gpu_tile.wgmma"(
// CHECK-NOT: tile.store
// CHECK: %[[L:.*]] = "gpu_tile.wgmma"({{.*}}, %[[K]])
// CHECK: "gpu_tile.wgmma_wait"(%[[V]]) {pending = 2 : i32}
// CHECK: arith.addf
// CHECK: "tile.store"
// CHECK: "gpu_tile.wgmma_wait"(%[[L]]) {pending = 0 : i32}
// CHECK-LABEL: @loaded
// CHECK: scf.for
// CHECK: "tile.store"
// CHECK: "tile.load"
// CHECK: gpu_tile.wgmma_fence
func.func @late(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %o: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}}, %dk: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %half = arith.constant dense<0.5> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sum = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero) -> (!c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = arith.truncf %s : !c to !a
    %v = "tile.dot"(%p, %grad, %zero) {options = {}} : (!a, !a, !c) -> !c
    %more = arith.addf %v, %half : !c
    %out = arith.truncf %more : !c to !a
    "tile.store"(%out, %o, %i, %c0) {dims = array<i32: 0, 1>, options = {}} : (!a, !m, index, index) -> ()
    %wide = arith.extf %query : !a to !c
    %less = arith.mulf %wide, %half : !c
    %aged = arith.truncf %less : !c to !a
    %at = "tile.transpose"(%aged) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %old = arith.mulf %sk, %half : !c
    %nk = "tile.dot"(%at, %grad, %old) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk : !c
  }
  "tile.store"(%sum, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}

func.func @loaded(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                %o: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}}, %dk: memref<?x64xf32, strided<[64, 1]>>, %x: memref<?xf32, strided<[3]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %half = arith.constant dense<0.5> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sum = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero) -> (!c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = arith.truncf %s : !c to !a
    %v = "tile.dot"(%p, %grad, %zero) {options = {}} : (!a, !a, !c) -> !c
    %more = arith.addf %v, %half : !c
    %out = arith.truncf %more : !c to !a
    "tile.store"(%out, %o, %i, %c0) {dims = array<i32: 0, 1>, options = {}} : (!a, !m, index, index) -> ()
    %row = "tile.load"(%x, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[3]>>, index) -> tensor<64xf32>
    %w = "tile.broadcast"(%row) {dims = array<i32: 1>} : (tensor<64xf32>) -> !c
    %wide = arith.extf %query : !a to !c
    %less = arith.mulf %wide, %w : !c
    %aged = arith.truncf %less : !c to !a
    %at = "tile.transpose"(%aged) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %old = arith.mulf %sk, %half : !c
    %nk = "tile.dot"(%at, %grad, %old) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk : !c
  }
  "tile.store"(%sum, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
