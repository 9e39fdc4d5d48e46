// A take gathers from a buffer.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

// CHECK-LABEL: @take
// CHECK-SAME: (%[[X:.*]]: tensor<8x32xf32{{.*}}, %[[I:.*]]: tensor<16x32xi32
func.func @take(%x: tensor<8x32xf32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(2):(4@0)">>, %i: tensor<16x32xi32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(4):(4@0)">>) attributes {tile.kernel} {
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[X]], %[[B]])
  // CHECK: "gpu_tile.buffer_gather"(%[[B]], %[[I]]) {axis = 0 : i32}
  // CHECK-NOT: tile.take
  %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8x32xf32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(2):(4@0)">>, tensor<16x32xi32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(4):(4@0)">>) -> tensor<16x32xf32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(4):(4@0)">>
  return
}
