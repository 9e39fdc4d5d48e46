// A program that fills slots in a loop of loops: the inner one is counted, the outer one stays.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,insert-async-copies,split-conversions,specialize-warps,alternate-programs --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: name = "load"
// CHECK: scf.if
// CHECK: "gpu_tile.wgmma"
// CHECK: } else {
// CHECK: %[[SKIPPED:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (i32)
// CHECK-NOT: scf.for
// CHECK: arith.select
// CHECK: %[[LATER:.*]] = arith.addi %[[N]]
// CHECK: scf.yield %[[LATER]] : i32
// CHECK: scf.yield %[[SKIPPED]] : i32
// CHECK: name = "compute"
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>, %times: index) attributes {tile.kernel, tile.consumers = "pingpong", tile.persistent = true} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %p, %bk : index
  %acc = scf.for %i = %c0 to %times step %c1 iter_args(%outer = %zero) -> (!c) {
    %end = arith.muli %i, %bk : index
    %inner = scf.for %k = %c0 to %end step %bk iter_args(%sum = %outer) -> (!c) {
      %ta = "tile.load"(%a, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    scf.yield %inner : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
