// Neighbours along the first axis take a pair of programs at a time, as often as each other.
// RUN: tilec opt %s --passes schedule-programs --target sm_90a --num-warps 1 | filecheck %s

// CHECK-LABEL: @k
// CHECK-SAME: tile.cluster = array<i32: 2>
// CHECK-SAME: tile.persistent = true
// CHECK: %[[X:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[MORE:.*]] = arith.addi %[[X]], %c1_i32
// CHECK: %[[PAIRS:.*]] = arith.divui %[[MORE]], %c2_i32
// CHECK: %[[PLANE:.*]] = arith.muli %[[PAIRS]], %[[Y:.*]] : i32
// CHECK: %[[ALL:.*]] = arith.muli %[[PLANE]], %{{.*}} : i32
// CHECK: %[[FIRST:.*]] = "gpu_tile.cluster_id"
// CHECK: %[[STEP:.*]] = "gpu_tile.num_clusters"
// CHECK: scf.for %[[W:.*]] = %[[FIRST]] to %[[ALL]] step %[[STEP]]
// CHECK: %[[REST:.*]] = arith.remui %[[W]], %[[PLANE]]
// CHECK: %[[J:.*]] = arith.divui %[[REST]], %[[PAIRS]]
// CHECK: %[[PAIR:.*]] = arith.remui %[[REST]], %[[PAIRS]]
// CHECK: %[[AT:.*]] = arith.muli %[[PAIR]], %c2
// CHECK: %[[MINE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK: %[[OWN:.*]] = arith.addi %[[AT]], %[[MINE]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[OWN]], %[[X]]
// CHECK: arith.select %[[INSIDE]], %[[OWN]], %[[AT]]
// CHECK: "tile.load"
// A program that is none stores nothing, wherever the store stands.
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: "tile.store"
// CHECK: scf.for
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: "tile.store"
func.func @k(%a: memref<?xi32, strided<[1]>>, %b: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %n = arith.addi %i, %j : index
  %c1 = arith.constant 1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  "tile.store"(%x, %b, %n) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  scf.for %k = %i to %n step %c1 {
    "tile.store"(%x, %b, %k) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  }
  return
}
