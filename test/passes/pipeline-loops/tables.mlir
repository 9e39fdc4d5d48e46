// Addresses that stand in a table: looked up again for each copy ahead, and no more for this one.
// RUN: tilec opt %s --passes pipeline-loops --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!p = memref<?xi32, strided<[1]>>
!e = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!t = tensor<16x64xf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @pages
// CHECK: %[[FIRST:.*]] = "tile.load"(%[[TABLE:arg1]], %c0)
// CHECK: %[[PAGE:.*]] = tensor.extract %[[FIRST]][]
// CHECK: %[[AT:.*]] = arith.index_cast %[[PAGE]]
// CHECK: "gpu_tile.cp_async"(%arg0, %{{.*}}, %{{.*}}, %[[AT]], %c0)
// CHECK: %[[SECOND:.*]] = "tile.load"(%[[TABLE]], %
// CHECK: "gpu_tile.cp_async"
// CHECK: scf.for
// CHECK: arith.addi %{{.*}}, %c1
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c1
// CHECK: "tile.load"(%[[TABLE]], %[[AHEAD]])
// CHECK: "gpu_tile.cp_async"
// CHECK-NOT: "tile.load"(%[[TABLE]]
// CHECK: return
func.func @pages(%a: !m, %table: !p, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c1 {
    %e = "tile.load"(%table, %k) {dims = array<i32>, padding = 0 : i32, options = {}} : (!p, index) -> !e
    %i = tensor.extract %e[] : !e
    %page = arith.index_cast %i : i32 to index
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %page, %c0) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 3 : i32}
  return
}
