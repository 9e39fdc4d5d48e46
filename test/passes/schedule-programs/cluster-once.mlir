// Clusters that do not stay are as many as the grid needs; each CTA is at one program.
// RUN: tilec opt %s --passes schedule-programs --target sm_90a --num-warps 1 | filecheck %s

// CHECK-LABEL: @k
// CHECK-SAME: tile.cluster = array<i32: 1, 2>
// CHECK-SAME: tile.persistent = false
// CHECK-NOT: scf.for
// CHECK: %[[Y:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[MORE:.*]] = arith.addi %{{.*}}, %c1_i32
// CHECK: %[[PAIRS:.*]] = arith.divui %[[MORE]], %c2_i32
// CHECK: %[[PLANE:.*]] = arith.muli %{{.*}}, %[[PAIRS]] : i32
// CHECK: %[[W:.*]] = "gpu_tile.cluster_id"
// CHECK: %[[REST:.*]] = arith.remui %[[W]], %[[PLANE]]
// CHECK: "gpu_tile.cluster_position"() {axis = 1 : i32}
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt
// CHECK: "tile.load"
// CHECK: scf.if %[[INSIDE]]
// CHECK-NEXT: "tile.store"
// CHECK-NOT: scf.for
func.func @k(%a: memref<?xi32, strided<[1]>>, %b: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.cluster = array<i32: 1, 2>, tile.persistent = false} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %n = arith.addi %i, %j : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  "tile.store"(%x, %b, %n) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
