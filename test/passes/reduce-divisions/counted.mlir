// Digits of a loop's counter are counted along: of the counter, of what is ahead of it by a
// constant, of a quotient. A divisor may be 0 where the loop has no iterations.
// RUN: tilec opt %s --passes reduce-divisions --target sm_90a | filecheck %s

!x = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: func.func @digits(
// CHECK: %[[FIRST:.*]] = "tile.program_id"
// CHECK: %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK: %[[COLUMNS:.*]] = memref.dim %arg0, %c1
// CHECK: %[[ONE:.*]] = arith.maxsi %[[COLUMNS]], %c1
// CHECK: %[[Q0:.*]] = arith.divui %{{.*}}, %[[ONE]]
// CHECK: %[[R0:.*]] = arith.remui %{{.*}}, %[[ONE]]
// CHECK: %[[ABOVE0:.*]] = arith.divui %[[Q0]]
// CHECK: %[[ROW0:.*]] = arith.remui %[[Q0]]
// CHECK: %[[LATER:.*]] = arith.addi %[[FIRST]], %c3
// CHECK: arith.divui %[[LATER]]
// CHECK: %[[S0:.*]] = arith.remui %[[LATER]]
// CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[Q0]], %[[R:.*]] = %[[R0]], %[[ABOVE:.*]] = %[[ABOVE0]], %[[ROW:.*]] = %[[ROW0]], %{{.*}} = %{{.*}}, %[[S:.*]] = %[[S0]])
// CHECK-NOT: arith.{{div|rem|floordiv}}
// CHECK: "tile.assume"(%[[Q]])
// CHECK: "tile.assume"(%[[R]])
// CHECK: "tile.assume"(%[[ABOVE]])
// CHECK: "tile.assume"(%[[ROW]])
// CHECK: "tile.assume"(%[[S]])
// CHECK: %[[MORE:.*]] = arith.addi %[[R]], %c1
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[MORE]], %[[COLUMNS]]
// CHECK: %[[FULL:.*]] = arith.xori %[[BELOW]], %true
// CHECK: %[[REST:.*]] = arith.select %[[FULL]], %c0{{.*}}, %[[MORE]]
// CHECK: %[[NEXT:.*]] = arith.select %[[FULL]], %{{.*}}, %[[Q]]
// CHECK: arith.select %[[FULL]], %{{.*}}, %[[ROW]]
// CHECK: scf.yield %[[NEXT]], %[[REST]],
func.func @digits(%x: !x, %y: !x) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %first = "tile.program_id"() {axis = 0 : i32} : () -> index
  %rows = memref.dim %x, %c0 : !x
  %columns = memref.dim %x, %c1 : !x
  %n = memref.dim %y, %c1 : !x
  scf.for %i = %first to %n step %c1 {
    %q = arith.floordivsi %i, %columns : index
    %r = arith.remsi %i, %columns : index
    %above = arith.floordivsi %q, %rows : index
    %row = arith.remsi %q, %rows : index
    %ahead = arith.addi %i, %c3 : index
    %s = arith.remsi %ahead, %columns : index
    "tile.assume"(%q) {facts = {}} : (index) -> ()
    "tile.assume"(%r) {facts = {}} : (index) -> ()
    "tile.assume"(%above) {facts = {}} : (index) -> ()
    "tile.assume"(%row) {facts = {}} : (index) -> ()
    "tile.assume"(%s) {facts = {}} : (index) -> ()
  }
  return
}
