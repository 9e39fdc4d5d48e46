// A warp that takes one program after the other divides the next one's number behind the loads of this
// one, which wait for no division then.
// RUN: tilec opt %s --passes reduce-divisions --target sm_90a --num-warps 1 | filecheck %s

!l = tensor<256xbf16, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>
!x = memref<?x?x?xbf16, strided<[?, ?, 1]>>

// CHECK-LABEL: @rows
// CHECK: %[[COLUMNS:.*]] = arith.maxsi
// CHECK: arith.divui %[[FIRST:.*]], %[[COLUMNS]]
// CHECK: arith.remui %[[FIRST]], %[[COLUMNS]]
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %{{.*}} step %[[STEP:.*]] iter_args(%[[Q:.*]] = %{{.*}}, %[[R:.*]] = %{{.*}})
// CHECK-NEXT: "tile.load"(%arg0, %[[Q]], %[[R]], %c0)
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]]
// CHECK-NEXT: %[[NQ:.*]] = arith.divui %[[NEXT]]
// CHECK-NEXT: %[[NR:.*]] = arith.remui %[[NEXT]]
// CHECK: "tile.store"({{.*}}, %[[Q]], %[[R]], %c0)
// CHECK: scf.yield %[[NQ]], %[[NR]]
func.func @rows(%x: !x, %y: !x) attributes {tile.kernel, tile.persistent = true, tile.programs_per_cta = 8 : i32} {
  %c0 = arith.constant 0 : index
  %columns = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %rows = "tile.num_programs"() {axis = 1 : i32} : () -> index
  %all = arith.muli %columns, %rows : index
  %cta32 = "gpu_tile.cta_id"() : () -> i32
  %step32 = "gpu_tile.num_ctas"() : () -> i32
  %cta = arith.index_cast %cta32 : i32 to index
  %step = arith.index_cast %step32 : i32 to index
  scf.for %i = %cta to %all step %step {
    %row = arith.divui %i, %columns : index
    %column = arith.remui %i, %columns : index
    %v = "tile.load"(%x, %row, %column, %c0) {dims = array<i32: 2>, options = {}, padding = 0.0 : bf16} : (!x, index, index, index) -> !l
    %w = arith.addf %v, %v : !l
    "tile.store"(%w, %y, %row, %column, %c0) {dims = array<i32: 2>, options = {}} : (!l, !x, index, index, index) -> ()
  }
  return
}

// Another loop keeps its divisions.
// CHECK-LABEL: @others
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: arith.divui
func.func @others(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %columns = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %rows = "tile.num_programs"() {axis = 1 : i32} : () -> index
  scf.for %i = %c0 to %rows step %columns {
    %row = arith.divui %i, %columns : index
    %v = "tile.load"(%x, %row, %c0, %c0) {dims = array<i32: 2>, options = {}, padding = 0.0 : bf16} : (!x, index, index, index) -> !l
    "tile.store"(%v, %y, %row, %c0, %c0) {dims = array<i32: 2>, options = {}} : (!l, !x, index, index, index) -> ()
  }
  return
}
