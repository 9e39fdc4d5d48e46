// Programs of a cluster that differ in the rhs, or share the lhs too, multiply by themselves.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,pair-products --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-NOT: pair_load
// CHECK-NOT: multicast
// CHECK: tcgen05.m128n64k16
func.func @same_lhs(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.cluster = array<i32: 2, 1>} {
  %px = "tile.program_id"() {axis = 0 : i32} : () -> index
  %bm = arith.constant 128 : index
  %m = arith.muli %px, %bm : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK: tcgen05.m128n64k16
func.func @other_rhs(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.cluster = array<i32: 2, 1>} {
  %px = "tile.program_id"() {axis = 0 : i32} : () -> index
  %bm = arith.constant 128 : index
  %m = arith.muli %px, %bm : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %m) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
