// Partners in other warps are gathered from a buffer, those in lanes and registers stay.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

!t = tensor<128xf32, #gpu_tile.layout<"T(32,2):(1@0,64@0) V(2):(32@0)">>

// CHECK-LABEL: @exchange
// CHECK-SAME: (%[[X:.*]]: tensor<128xf32
func.func @exchange(%x: !t) attributes {tile.kernel} {
  // CHECK-NOT: gpu_tile.alloc
  // CHECK: %[[A:.*]] = "tile.exchange"(%[[X]]) {axis = 0 : i32, mask = 33 : i32}
  %a = "tile.exchange"(%x) {axis = 0 : i32, mask = 33 : i32} : (!t) -> !t
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[A]], %[[B]])
  // CHECK: %[[I:.*]] = "tile.iota"() {axis = 0 : i32}
  // CHECK: %[[M:.*]] = arith.constant dense<65>
  // CHECK: %[[P:.*]] = arith.xori %[[I]], %[[M]]
  // CHECK: "gpu_tile.buffer_gather"(%[[B]], %[[P]]) {axis = 0 : i32}
  // CHECK-NOT: tile.exchange
  %b = "tile.exchange"(%a) {axis = 0 : i32, mask = 65 : i32} : (!t) -> !t
  return
}

// What a thread holds of neighbours goes and comes as vectors, and changes places in registers.
// CHECK-LABEL: @neighbours
// CHECK-SAME: (%[[X:.*]]: tensor<256xf32
func.func @neighbours(%x: tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) attributes {tile.kernel} {
  // CHECK: %[[R:.*]] = "tile.reshape"(%[[X]]){{.*}} -> tensor<64x4xf32, #gpu_tile.layout<"T(64):(1@0) V(4):(1@1)">>
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[R]], %[[B]])
  // CHECK: %[[I:.*]] = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32
  // CHECK: %[[M:.*]] = arith.constant dense<32> : tensor<64x1xi32
  // CHECK: %[[P:.*]] = arith.xori %[[I]], %[[M]]
  // CHECK: %[[ALL:.*]] = "tile.broadcast"(%[[P]]) {dims = array<i32: 0, 1>}
  // CHECK: %[[G:.*]] = "gpu_tile.buffer_gather"(%[[B]], %[[ALL]]) {axis = 0 : i32}
  // CHECK: %[[E:.*]] = "tile.exchange"(%[[G]]) {axis = 1 : i32, mask = 3 : i32}
  // CHECK: "tile.reshape"(%[[E]]){{.*}} -> tensor<256xf32
  %a = "tile.exchange"(%x) {axis = 0 : i32, mask = 131 : i32} : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) -> tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>
  return
}
