// A loop in any order: in odd rounds of CTAs it runs from the end. Where CTAs do not stay, nothing
// but the permission goes.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!t = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>

// CHECK-LABEL: @stay
// CHECK: %[[STEP:.*]] = "gpu_tile.num_ctas"
// CHECK: scf.for %[[W:.*]] = %{{.*}} to %{{.*}} step %[[STEP]]
// CHECK: %[[ROUND:.*]] = arith.divui %[[W]], %[[STEP]] : i32
// CHECK: %[[ODD:.*]] = arith.trunci %[[ROUND]] : i32 to i1
// CHECK: %[[LENGTH:.*]] = arith.subi %arg2, %arg1 : index
// CHECK: %[[LESS:.*]] = arith.subi %[[LENGTH]], %{{.*}} : index
// CHECK: %[[TRIPS:.*]] = arith.divsi %[[LESS]], %arg3 : index
// CHECK: %[[FURTHER:.*]] = arith.muli %[[TRIPS]], %arg3 : index
// CHECK: %[[TWICE:.*]] = arith.addi %arg1, %arg1 : index
// CHECK: %[[ENDS:.*]] = arith.addi %[[TWICE]], %[[FURTHER]] : index
// CHECK: scf.for %[[K:.*]] = %arg1 to %arg2 step %arg3 {
// CHECK-NEXT: %[[MIRRORED:.*]] = arith.subi %[[ENDS]], %[[K]] : index
// CHECK-NEXT: %[[AT:.*]] = arith.select %[[ODD]], %[[MIRRORED]], %[[K]] : index
// CHECK-NEXT: "tile.store"(%{{.*}}, %arg0, %[[AT]])
// CHECK-NEXT: }
// CHECK-NOT: any_order
func.func @stay(%a: memref<?xi32, strided<[1]>>, %low: index, %high: index, %step: index) attributes {tile.kernel, tile.persistent = true} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %n = arith.index_cast %i : index to i32
  %t = tensor.splat %n : !t
  scf.for %k = %low to %high step %step {
    "tile.store"(%t, %a, %k) {dims = array<i32>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
  } {tile.any_order = true}
  return
}

// CHECK-LABEL: @forbidden
// CHECK: "gpu_tile.num_ctas"
// CHECK-NOT: arith.select
func.func @forbidden(%a: memref<?xi32, strided<[1]>>, %low: index, %high: index, %step: index) attributes {tile.kernel, tile.persistent = true} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %n = arith.index_cast %i : index to i32
  %t = tensor.splat %n : !t
  scf.for %k = %low to %high step %step {
    "tile.store"(%t, %a, %k) {dims = array<i32>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
  } {tile.any_order = false}
  return
}

// CHECK-LABEL: @leave
// CHECK: scf.for %[[K:.*]] = %arg1
// CHECK-NEXT: "tile.store"(%{{.*}}, %arg0, %[[K]])
// CHECK-NEXT: }
// CHECK-NOT: any_order
func.func @leave(%a: memref<?xi32, strided<[1]>>, %low: index, %high: index, %step: index) attributes {tile.kernel} {
  %t = arith.constant dense<1> : !t
  scf.for %k = %low to %high step %step {
    "tile.store"(%t, %a, %k) {dims = array<i32>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
  } {tile.any_order = true}
  return
}
