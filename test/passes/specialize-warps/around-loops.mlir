// What comes once where a loop inside takes many turns: two slots, so that a second CTA fits on the
// multiprocessor; where that loop has no ring of its own, no roles.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<64x64xf32>
!f = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @both
// CHECK-SAME: tile.ctas_per_sm = 2 : i32
// CHECK-DAG: "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 2 : i32}
// CHECK-DAG: "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 3 : i32}
// CHECK: first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32
// CHECK: first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32
func.func @both(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %c: !f) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %a, %c0 : !m
  %size = memref.dim %a, %c1 : !m
  scf.for %p = %c0 to %rows step %bk {
    %ta = "tile.load"(%a, %p, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %first = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !b, !c) -> !c
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %first) -> (!c) {
      %tx = "tile.load"(%a, %p, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %ty = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
      %next = "tile.dot"(%tx, %ty, %sum) {options = {}} : (!a, !b, !c) -> !c
      scf.yield %next : !c
    }
    "tile.store"(%acc, %c, %p, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !f, index, index) -> ()
  }
  return
}

// Rows that begin anywhere: no tensor copies inside.
// CHECK-LABEL: @one
// CHECK: slots = 1 : i32
// CHECK: scf.for
// CHECK-NOT: "gpu_tile.role"
// CHECK: gpu_tile.tma_load
// CHECK: return
func.func @one(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
               %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
               %x: !m, %y: !m, %c: !f) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %a, %c0 : !m
  %size = memref.dim %a, %c1 : !m
  scf.for %p = %c0 to %rows step %bk {
    %ta = "tile.load"(%a, %p, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %first = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !b, !c) -> !c
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %first) -> (!c) {
      %tx = "tile.load"(%x, %p, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %ty = "tile.load"(%y, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
      %next = "tile.dot"(%tx, %ty, %sum) {options = {}} : (!a, !b, !c) -> !c
      scf.yield %next : !c
    }
    "tile.store"(%acc, %c, %p, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !f, index, index) -> ()
  }
  return
}
