// A loop that counts by a number from outside: quotient and remainder of that are added. What asks
// for the next iteration's numbers, in a branch here, takes those, and what is done for the first
// one in front of the loop those that it begins with.
// RUN: tilec opt %s --passes reduce-divisions --target sm_90a | filecheck %s

// CHECK-LABEL: func.func @steps(
// CHECK: %[[FIRST:.*]] = "tile.program_id"
// CHECK: %[[STEP:.*]] = "tile.num_programs"
// CHECK: %[[N:.*]] = memref.dim %arg0, %c0
// CHECK: %[[M:.*]] = memref.dim %arg0, %c1
// CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %c0
// CHECK: %[[Q0:.*]] = arith.divui %[[AT]]
// CHECK: %[[R0:.*]] = arith.remui %[[AT]]
// CHECK: %[[ABOVE0:.*]] = arith.divui %[[Q0]]
// CHECK: %[[ROW0:.*]] = arith.remui %[[Q0]]
// CHECK: %[[BY:.*]] = arith.addi %[[STEP]], %c0
// CHECK: %[[QS:.*]] = arith.divui %[[BY]]
// CHECK: %[[RS:.*]] = arith.remui %[[BY]]
// CHECK: arith.divui %[[QS]]
// CHECK: %[[ROWS:.*]] = arith.remui %[[QS]]
// CHECK: scf.if
// CHECK-NEXT: "tile.assume"(%[[Q0]])
// CHECK-NEXT: "tile.assume"(%[[R0]])
// CHECK: scf.for {{.*}} iter_args(%[[Q:.*]] = %[[Q0]], %[[R:.*]] = %[[R0]], %{{.*}} = %[[ABOVE0]], %[[ROW:.*]] = %[[ROW0]])
// CHECK-NOT: arith.{{div|rem|floordiv}}
// The remainder plus that of the step, less the divisor if that is reached.
// CHECK: %[[ROOM:.*]] = arith.subi %[[N]], %[[RS]]
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[R]], %[[ROOM]]
// CHECK: %[[FULL:.*]] = arith.xori %[[BELOW]], %true
// CHECK: %[[LEFT:.*]] = arith.subi %[[R]], %[[ROOM]]
// CHECK: %[[ONEMORE:.*]] = arith.addi %[[QS]], %c1
// CHECK: %[[MORE:.*]] = arith.select %[[FULL]], %[[ONEMORE]], %[[QS]]
// CHECK: %[[NEXTQ:.*]] = arith.addi %[[Q]], %[[MORE]]
// CHECK: %[[SUM:.*]] = arith.addi %[[R]], %[[RS]]
// CHECK: %[[NEXTR:.*]] = arith.select %[[FULL]], %[[LEFT]], %[[SUM]]
// The next digit counts what the first one does, and what that has too much.
// CHECK: %[[MUCH:.*]] = arith.subi %[[M]], %[[ROWS]]
// CHECK: arith.select %[[FULL]], %{{.*}}, %[[MUCH]]
// CHECK: scf.if
// CHECK-NEXT: "tile.assume"(%[[NEXTQ]])
// CHECK-NEXT: "tile.assume"(%[[NEXTR]])
// CHECK: "tile.assume"(%[[R]])
// CHECK: "tile.assume"(%[[ROW]])
// CHECK: scf.yield %[[NEXTQ]], %[[NEXTR]]
func.func @steps(%x: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = "tile.program_id"() {axis = 0 : i32} : () -> index
  %step = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %end = "tile.num_programs"() {axis = 1 : i32} : () -> index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  %m = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %any = arith.cmpi slt, %first, %end : index
  scf.if %any {
    %fq = arith.divui %first, %n : index
    %fr = arith.remui %first, %n : index
    "tile.assume"(%fq) {facts = {}} : (index) -> ()
    "tile.assume"(%fr) {facts = {}} : (index) -> ()
  }
  scf.for %i = %first to %end step %step {
    %next = arith.addi %i, %step : index
    %there = arith.cmpi slt, %next, %end : index
    scf.if %there {
      %nq = arith.divui %next, %n : index
      %nr = arith.remui %next, %n : index
      "tile.assume"(%nq) {facts = {}} : (index) -> ()
      "tile.assume"(%nr) {facts = {}} : (index) -> ()
    }
    %q = arith.divui %i, %n : index
    %r = arith.remui %i, %n : index
    %above = arith.divui %q, %m : index
    %row = arith.remui %q, %m : index
    "tile.assume"(%r) {facts = {}} : (index) -> ()
    "tile.assume"(%row) {facts = {}} : (index) -> ()
    "tile.assume"(%above) {facts = {}} : (index) -> ()
  }
  return
}

// Nobody asks for the next iteration's: one division each, no two in front of the loop.
// CHECK-LABEL: func.func @one_each(
// CHECK-NOT: arith.divui
// CHECK: scf.for
// CHECK-NEXT: arith.divui
func.func @one_each(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %first = "tile.program_id"() {axis = 0 : i32} : () -> index
  %step = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %end = "tile.num_programs"() {axis = 1 : i32} : () -> index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1]>>
  scf.for %i = %first to %end step %step {
    %q = arith.divui %i, %n : index
    "tile.assume"(%q) {facts = {}} : (index) -> ()
  }
  return
}
