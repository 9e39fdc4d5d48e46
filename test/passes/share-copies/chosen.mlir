// A cluster that was chosen with the tiles is no demand: where no tensor map describes the arrays, each CTA loads
// by itself.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,insert-tensor-stores,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma,allocate-shared,insert-fences,insert-barriers,share-copies --target sm_90a --num-warps 4 | filecheck %s

// CHECK: tile.cluster = array<i32: 2>
// CHECK-NOT: gpu_tile.tma
// CHECK: gpu_tile.cluster_position
// CHECK-NOT: gpu_tile.tma
// CHECK: gpu_tile.wgmma
!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<64x128xf32>

func.func @matmul(%a: !m,
                  %b: !m,
                  %c: !o) attributes {tile.kernel, tile.cluster = array<i32: 2>,
                              tile.auto = {"clusters of programs" = "2 x 1: why"}} {
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
