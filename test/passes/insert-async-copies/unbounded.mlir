// Along a dimension without bounds a tensor copy may not begin in front of the array, where the copy
// engine gives zeros: an offset that may be negative takes cp.async, one that cannot be does not.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: "gpu_tile.make_tensor_map"(%arg1)
// CHECK-NOT: "gpu_tile.make_tensor_map"(%arg0)
// CHECK: "gpu_tile.tma_load"
// CHECK: "gpu_tile.cp_async"(%arg0,
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}, tile.unbounded = array<i32: 0>},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}, tile.unbounded = array<i32: 0>},
                  %c: memref<?x?xf32, strided<[?, 1]>>, %row: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %row, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
