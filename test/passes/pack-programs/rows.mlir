// Programs of one warp share a CTA; each warp takes every so manieth.
// RUN: tilec opt %s --passes pack-programs --target sm_80 --num-warps 1 | filecheck %s

!v = memref<?xi32, strided<[1]>>
!t = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// Programs along the axes that the kernel does not look at do all the same again.
// CHECK-LABEL: @rows
// CHECK-SAME: tile.persistent = true, tile.programs_per_cta = 8 : i32
// CHECK-DAG: %[[X:.*]] = "tile.num_programs"() {axis = 0 : i32}
// CHECK-DAG: %[[Y:.*]] = "tile.num_programs"() {axis = 1 : i32}
// CHECK-DAG: %[[Z:.*]] = "tile.num_programs"() {axis = 2 : i32}
// CHECK: "gpu_tile.cta_id"
// CHECK: %[[CTA:.*]] = arith.index_cast
// CHECK: "gpu_tile.num_ctas"
// CHECK: %[[CTAS:.*]] = arith.index_cast
// CHECK: "gpu_tile.program_in_cta"
// CHECK: %[[OWN:.*]] = arith.index_cast
// CHECK: "gpu_tile.programs_in_cta"
// CHECK: %[[WARPS:.*]] = arith.index_cast
// CHECK: %[[STEP:.*]] = arith.muli %[[CTAS]], %[[WARPS]]
// CHECK: %[[OTHERS:.*]] = arith.muli %[[Y]], %[[Z]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[CTAS]], %[[OWN]]
// CHECK: %[[APART:.*]] = arith.addi %[[CTA]], %[[BEFORE]]
// CHECK: %[[ABOVE:.*]] = arith.muli %[[CTA]], %[[WARPS]]
// CHECK: %[[SIDE:.*]] = arith.addi %[[ABOVE]], %[[OWN]]
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[ROUNDS:.*]] = arith.muli %[[STEP]], %[[TWO]]
// CHECK: %[[MANY:.*]] = arith.cmpi slt, %[[ROUNDS]], %[[X]]
// CHECK: %[[FIRST:.*]] = arith.select %[[MANY]], %[[SIDE]], %[[APART]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[OTHERS]]
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %[[X]] step %[[STEP]]
// CHECK: "tile.store"(%{{.*}}, %{{.*}}, %[[ROW]])
// CHECK-NOT: tile.program_id
func.func @rows(%a: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// CHECK-LABEL: @planes
// CHECK: %[[X:.*]] = "tile.num_programs"() {axis = 0 : i32}
// CHECK: %[[Y:.*]] = "tile.num_programs"() {axis = 1 : i32}
// CHECK: %[[ALL:.*]] = arith.muli %[[X]],
// CHECK: scf.for %[[P:.*]] = %{{.*}} to %[[ALL]]
// CHECK: %[[ROW:.*]] = arith.divui %[[P]], %[[X]]
// CHECK: %[[I:.*]] = arith.remui %[[P]], %[[X]]
// CHECK: %[[J:.*]] = arith.remui %[[ROW]], %[[Y]]
// CHECK: %[[K:.*]] = arith.divui %[[ROW]], %[[Y]]
// CHECK: arith.addi %[[I]], %[[K]]
// CHECK: arith.addi %{{.*}}, %[[J]]
func.func @planes(%a: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %k = "tile.program_id"() {axis = 2 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %ik = arith.addi %i, %k : index
  %n = arith.addi %ik, %j : index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %n) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// Memory says how long each takes: all of it is in the loop.
// CHECK-LABEL: @lengths
// CHECK-SAME: tile.programs_per_cta = 8 : i32
// CHECK: scf.for
// CHECK: scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[N:.*]] = "tile.load"(%{{.*}}, %[[P]])
// CHECK: %[[END:.*]] = tensor.extract %[[N]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[END]]
// CHECK: "tile.store"(%{{.*}}, %{{.*}}, %[[K]])
func.func @lengths(%a: !v, %b: memref<?xindex, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %n = "tile.load"(%b, %i) {dims = array<i32>, padding = 0 : index, options = {}} : (memref<?xindex, strided<[1]>>, index) -> tensor<index, #gpu_tile.layout<"T():() V():()">>
  %end = tensor.extract %n[] : tensor<index, #gpu_tile.layout<"T():() V():()">>
  %x = arith.constant dense<1> : !t
  scf.for %k = %c0 to %end step %c1 {
    "tile.store"(%x, %a, %k) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  }
  return
}

// Four programs a warp: as many threads as ever.
// CHECK-LABEL: @parts
// CHECK-SAME: tile.programs_per_cta = 32 : i32
func.func @parts(%a: !v) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// Of two axes one division says which program this is; programs along the third do all the same.
// CHECK-LABEL: @two_axes
// CHECK: scf.for
// CHECK: scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: %[[ROW:.*]] = arith.divui %[[P]], %[[X:.*]] : index
// CHECK-NEXT: %[[COLUMN:.*]] = arith.remui %[[P]], %[[X]] : index
// CHECK-NOT: arith.remui
// CHECK: "tile.store"(%{{.*}}, %{{.*}}, %[[ROW]], %[[COLUMN]])
func.func @two_axes(%a: memref<?x?xi32, strided<[?, 1]>>) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %n = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = "tile.program_id"() {axis = 1 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %m, %n) {dims = array<i32: 1>, options = {}} : (!t, memref<?x?xi32, strided<[?, 1]>>, index, index) -> ()
  return
}
