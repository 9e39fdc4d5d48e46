// 2 x 2 CTAs share both operands. A slot is free when those above, below and beside have read it: the
// CTA across never writes it.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,insert-tensor-stores,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma,allocate-shared,insert-fences,insert-barriers,share-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<64x128xf32>

// CHECK-LABEL: @matmul
// CHECK-DAG: %[[COLUMN:.*]] = "gpu_tile.cluster_mask"() {axes = array<i32: 0>}
// CHECK-DAG: %[[ROW:.*]] = "gpu_tile.cluster_mask"() {axes = array<i32: 1>}
// CHECK-DAG: %[[CROSS:.*]] = arith.ori
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, {{.*}}releases = 3 : i32,
// CHECK: "gpu_tile.tma_multicast"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[ROW]],
// CHECK: "gpu_tile.tma_multicast"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[COLUMN]],
// CHECK: "gpu_tile.ring_release"(%[[RING]], %{{[^,]*}}, %[[CROSS]])
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: !o) attributes {tile.kernel, tile.cluster = array<i32: 2, 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %bn = arith.constant 128 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %x = arith.muli %i, %bk : index
  %y = arith.muli %j, %bn : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %x, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %y) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %x, %y) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}
