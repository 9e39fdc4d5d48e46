// Programs whose loop ends at a place of their own take longer and longer along the grid, those whose
// loop begins at one ever shorter: the CTAs' turns come from its front and its back. Splits, which do
// both, are all alike.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!a = memref<?xi32, strided<[1]>>
!t = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// CHECK-LABEL: @grow
// CHECK: %[[ALL:.*]] = arith.muli
// CHECK: %[[ALL:.*]] = arith.muli
// CHECK: %[[FIRST:.*]] = "gpu_tile.cta_id"
// CHECK: %[[CTAS:.*]] = "gpu_tile.num_ctas"
// CHECK: scf.for %[[TURN:.*]] = %[[FIRST]] to %[[ALL]] step %[[CTAS]]
// CHECK: %[[TURNS:.*]] = arith.divui %[[TURN]], %[[CTAS]]
// CHECK: %[[MORE:.*]] = arith.addi %[[TURNS]], %{{.*}}
// CHECK: %[[EVEN:.*]] = arith.shrui %[[MORE]], %{{.*}}
// CHECK: %[[TAKEN:.*]] = arith.muli %[[EVEN]], %[[CTAS]]
// CHECK: %[[FRONT:.*]] = arith.subi %[[TURN]], %[[TAKEN]]
// CHECK: %[[LAST:.*]] = arith.subi %[[ALL]], %{{.*}}
// CHECK: %[[BACK:.*]] = arith.subi %[[LAST]], %[[FRONT]]
// CHECK: %[[ODD:.*]] = arith.trunci %[[TURNS]] : i32 to i1
// CHECK: %[[SIDE:.*]] = arith.select %[[ODD]], %[[BACK]], %[[FRONT]]
// CHECK: %[[PROGRAM:.*]] = arith.maxsi %[[SIDE]], %{{.*}}
// CHECK: arith.divui %[[PROGRAM]]
func.func @grow(%a: !a, %x: !t) attributes {tile.kernel, tile.persistent = true} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %end = arith.addi %i, %c1 : index
  %sum = scf.for %k = %c0 to %end step %c1 iter_args(%s = %x) -> (!t) {
    %next = arith.addi %s, %x : !t
    scf.yield %next : !t
  }
  "tile.store"(%sum, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !a, index) -> ()
  return
}

// CHECK-LABEL: @shrink
// CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %[[ALL:.*]] step
// CHECK: arith.subi %[[ALL]]
// CHECK: arith.select
func.func @shrink(%a: !a, %x: !t, %length: index) attributes {tile.kernel, tile.persistent = true} {
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %sum = scf.for %k = %i to %length step %c1 iter_args(%s = %x) -> (!t) {
    %next = arith.addi %s, %x : !t
    scf.yield %next : !t
  }
  "tile.store"(%sum, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !a, index) -> ()
  return
}

// CHECK-LABEL: @split
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to
// CHECK-NEXT: arith.divui %[[NUMBER]]
// CHECK-NEXT: arith.remui %[[NUMBER]]
func.func @split(%a: !a, %x: !t) attributes {tile.kernel, tile.persistent = true} {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %begin = arith.muli %i, %c8 : index
  %end = arith.addi %begin, %c8 : index
  %sum = scf.for %k = %begin to %end step %c1 iter_args(%s = %x) -> (!t) {
    %next = arith.addi %s, %x : !t
    scf.yield %next : !t
  }
  "tile.store"(%sum, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !a, index) -> ()
  return
}

// Programs that wait for lower ones begin in ascending order, whatever they take.
// CHECK-LABEL: @waits
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to
// CHECK-NEXT: arith.divui %[[NUMBER]]
// CHECK-NEXT: arith.remui %[[NUMBER]]
func.func @waits(%a: !a, %x: !t) attributes {tile.kernel, tile.persistent = true} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %end = arith.addi %i, %c1 : index
  %sum = scf.for %k = %c0 to %end step %c1 iter_args(%s = %x) -> (!t) {
    %next = arith.addi %s, %x : !t
    scf.yield %next : !t
  }
  "tile.store"(%sum, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !a, index) -> ()
  "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
  return
}

// Where data says which programs have anything to do, nobody knows where those are.
// CHECK-LABEL: @some
// CHECK: scf.for %[[NUMBER:.*]] = %{{.*}} to
// CHECK-NEXT: arith.divui %[[NUMBER]]
// CHECK-NEXT: arith.remui %[[NUMBER]]
func.func @some(%a: !a, %x: !t, %used: index) attributes {tile.kernel, tile.persistent = true} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %inside = arith.cmpi slt, %i, %used : index
  %end = arith.select %inside, %c8, %c0 : index
  %sum = scf.for %k = %c0 to %end step %c1 iter_args(%s = %x) -> (!t) {
    %next = arith.addi %s, %x : !t
    scf.yield %next : !t
  }
  "tile.store"(%sum, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !a, index) -> ()
  return
}
