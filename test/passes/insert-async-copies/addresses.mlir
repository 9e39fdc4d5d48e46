// Numbers that say where other copies go are no copies themselves, though the author asks for stages:
// they have to be there when those are issued.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,pipeline-loops --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!v = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @pages
// CHECK: "tile.load"(%arg1
// CHECK: "gpu_tile.cp_async"(%arg0
// CHECK-NOT: "gpu_tile.cp_async"(%arg1
// CHECK: scf.for
// CHECK: return
func.func @pages(%x: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                 %table: !v {tile.facts = {align = 4 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}},
                 %o: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %count = memref.dim %table, %c0 : !v
  %q = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %zero) -> (!c) {
    %n = "tile.load"(%table, %i) {dims = array<i32>, padding = 0 : i32, options = {}} : (!v, index) -> tensor<i32>
    %e = tensor.extract %n[] : tensor<i32>
    %at = arith.index_cast %e : i32 to index
    %page = "tile.load"(%x, %at, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%q, %page, %acc) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 2 : i32}
  "tile.store"(%sum, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
