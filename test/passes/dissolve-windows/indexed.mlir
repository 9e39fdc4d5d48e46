// Indices count from the window's beginning, and the mask says which lie inside.
// RUN: tilec opt %s --passes dissolve-windows --target sm_90a | filecheck %s

!r = memref<?xi32, strided<[1]>>

// CHECK-LABEL: @gather_and_add
// CHECK-SAME: (%[[X:.*]]: memref<?xi32{{.*}}>, %[[A:[^:]*]]: index, %[[N:[^:]*]]: index, %[[I:[^:]*]]: tensor<8xi32>, %[[OK:[^:]*]]: tensor<8xi1>
// CHECK: %[[AS:.*]] = arith.index_cast %[[I]] : tensor<8xi32> to tensor<8xindex>
// CHECK: arith.cmpi sge, %[[AS]], %{{.*}}
// CHECK: arith.cmpi slt, %[[AS]], %{{.*}}
// CHECK: %[[AT:.*]] = arith.addi %[[AS]], %{{.*}}
// CHECK: %[[SOME:.*]] = arith.andi %[[OK]],
// CHECK: %[[MASK:.*]] = arith.andi %[[SOME]],
// CHECK: "tile.gather"(%[[X]], %[[MASK]], %{{.*}}, %[[AT]])
// CHECK: "tile.atomic_rmw"(%{{.*}}, %[[X]], %{{.*}}, %{{.*}})
// CHECK-NOT: tile.window
func.func @gather_and_add(%x: !r, %a: index, %n: index, %i: tensor<8xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %w = "tile.window"(%x, %a, %n) {dim = 0 : i32} : (!r, index, index) -> !r
  %t = "tile.gather"(%w, %ok, %v, %i) {options = {}} : (!r, tensor<8xi1>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  %old = "tile.atomic_rmw"(%t, %w, %ok, %i) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (tensor<8xi32>, !r, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}
