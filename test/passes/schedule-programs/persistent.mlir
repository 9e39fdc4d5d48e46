// On demand CTAs share the programs, on any target: each takes every num_ctas-th.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

// CHECK-LABEL: @k
// CHECK-SAME: tile.persistent = true
// CHECK: %[[X:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[Y:.*]] = arith.index_cast
// CHECK: %[[Z:.*]] = arith.index_cast
// CHECK: %[[PLANE:.*]] = arith.muli %[[X]], %[[Y]] : i32
// CHECK: %[[ALL:.*]] = arith.muli %[[PLANE]], %[[Z]] : i32
// CHECK: %[[FIRST:.*]] = "gpu_tile.cta_id"
// CHECK: %[[STEP:.*]] = "gpu_tile.num_ctas"
// CHECK: scf.for %[[W:.*]] = %[[FIRST]] to %[[ALL]] step %[[STEP]]
// CHECK: arith.divui %[[W]], %[[PLANE]]
// CHECK: %[[REST:.*]] = arith.remui %[[W]], %[[PLANE]]
// CHECK: %[[J:.*]] = arith.divui %[[REST]], %[[X]]
// CHECK: %[[I:.*]] = arith.remui %[[REST]], %[[X]]
// CHECK-NOT: tile.program_id
// CHECK: tile.store
func.func @k(%a: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.persistent = true} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %n = arith.addi %i, %j : index
  %x = arith.constant dense<1> : tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  "tile.store"(%x, %a, %n) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
