// What a CTA asks of its cluster, printed as it was read.
// RUN: %roundtrip

// CHECK-LABEL: @ops
func.func @ops(%v: tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, %b: !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>, %row: tensor<8xf32, #gpu_tile.layout<"T(128):(0) V(8):(1@0)">>) {
  // CHECK: "gpu_tile.cluster_id"() : () -> i32
  %first = "gpu_tile.cluster_id"() : () -> i32
  // CHECK: "gpu_tile.num_clusters"() : () -> i32
  %step = "gpu_tile.num_clusters"() : () -> i32
  // CHECK: "gpu_tile.cluster_position"() {axis = 2 : i32} : () -> i32
  %z = "gpu_tile.cluster_position"() {axis = 2 : i32} : () -> i32
  // CHECK: "gpu_tile.cluster_mask"() {axes = array<i32: 0, 1>} : () -> i32
  %plane = "gpu_tile.cluster_mask"() {axes = array<i32: 0, 1>} : () -> i32
  // CHECK: "gpu_tile.cluster_mask"() {axes = array<i32>} : () -> i32
  %self = "gpu_tile.cluster_mask"() {axes = array<i32>} : () -> i32
  // CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  // CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  // CHECK: "gpu_tile.cluster_store"(%{{.*}}, %{{.*}}) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) -> ()
  "gpu_tile.cluster_store"(%v, %b) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) -> ()
  %part = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>
  // CHECK: "gpu_tile.cluster_send"(%{{.*}}, %{{.*}}) {axis = 0 : i32} : (tensor<8xf32, #gpu_tile.layout<"T(128):(0) V(8):(1@0)">>, !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) -> ()
  "gpu_tile.cluster_send"(%row, %part) {axis = 0 : i32} : (tensor<8xf32, #gpu_tile.layout<"T(128):(0) V(8):(1@0)">>, !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) -> ()
  return
}
