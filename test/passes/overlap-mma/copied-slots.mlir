// Slots that the multiplying threads fill by cp.async, behind the wait: the product stays in flight,
// and copies fill the slot of the one before.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,pipeline-loops,split-conversions,specialize-warps,overlap-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!i = tensor<64x64xi32>
!c = tensor<64x64xf32>

// CHECK-LABEL: @rows
// CHECK: "gpu_tile.make_ring"() {fills = 0 : i32, options = {}, releases = 0 : i32, slots = 4 : i32}
// CHECK: scf.for
// CHECK: "gpu_tile.cp_async_wait"() {pending = 2 : i32}
// CHECK: %[[NEXT:.*]] = "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%[[NEXT]]) {pending = 1 : i32}
// CHECK-COUNT-2: "gpu_tile.cp_async_gather"
// CHECK-NOT: gpu_tile.ring_release
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %numbers: !n, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %all = arith.constant dense<true> : tensor<64x64xi1>
  %none = arith.constant dense<0.0> : !a
  %size = memref.dim %a, %c1 : !m
  %number = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%number) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : !i
    %column = arith.addi %from, %along : !i
    %ta = "tile.gather"(%a, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.gather"(%b, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tt = "tile.transpose"(%tb) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %d = "tile.dot"(%ta, %tt, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
