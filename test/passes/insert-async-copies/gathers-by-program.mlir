// A gather beside what a tensor copy could bring: where CTAs go on to the next program, a role does
// both, ahead of it; where each has one program, the threads that multiply copy both.
// RUN: tilec opt %s --passes select-mma,infer-layouts,remove-layout-conversions,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s
// RUN: tilec opt %s --passes select-mma,infer-layouts,remove-layout-conversions,schedule-programs,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s --check-prefix=SHARED

!m = memref<?x?xbf16, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!a = tensor<128x64xbf16>
!i = tensor<128x64xi32>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-LABEL: @rows
// CHECK-NOT: gpu_tile.tma_load
// CHECK: "gpu_tile.cp_async_gather"
// CHECK: "gpu_tile.cp_async"

// SHARED-LABEL: @rows
// SHARED: "gpu_tile.tma_load"
// SHARED: "gpu_tile.cp_async_gather"
// SHARED-NEXT: "gpu_tile.ring_publish"
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %numbers: !n,
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %none = arith.constant dense<0.0> : !a
  %ok = arith.constant dense<true> : tensor<128x64xi1>
  %size = memref.dim %a, %c1 : !m
  %of = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<128xi32>
  %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<128xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %first = tensor.splat %k32 : !i
    %column = arith.addi %first, %along : !i
    %ta = "tile.gather"(%a, %ok, %none, %row, %column) {options = {}} : (!m, tensor<128x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
