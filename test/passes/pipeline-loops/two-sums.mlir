// Two sums that a loop carries leave registers for one CTA: its rings get all the shared memory.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,pipeline-loops --target sm_80 --num-warps 8 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!f = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<128x128xf32>

// CHECK-LABEL: @two_sums
// CHECK-COUNT-3: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<3x
// CHECK: scf.for
func.func @two_sums(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                    %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                    %d: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                    %c: !f, %e: !f) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %sums:2 = scf.for %k = %c0 to %size step %bk iter_args(%x = %zero, %y = %zero) -> (!c, !c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %td = "tile.load"(%d, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %p = "tile.dot"(%ta, %tb, %x) {options = {}} : (!a, !b, !c) -> !c
    %q = "tile.dot"(%ta, %td, %y) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %p, %q : !c, !c
  }
  "tile.store"(%sums#0, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !f, index, index) -> ()
  "tile.store"(%sums#1, %e, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !f, index, index) -> ()
  return
}
