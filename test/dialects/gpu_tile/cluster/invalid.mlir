// Every rule of the ops in cluster.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @a_cluster_is_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %first = "gpu_tile.cluster_id"() : () -> index
  return
}

// -----
func.func @clusters_are_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %step = "gpu_tile.num_clusters"() : () -> index
  return
}

// -----
func.func @four_dimensions() {
  // expected-error @below {{'gpu_tile.cluster_position' op axis must be 0, 1 or 2, found 3}}
  %x = "gpu_tile.cluster_position"() {axis = 3 : i32} : () -> i32
  return
}

// -----
func.func @an_axis_twice() {
  // expected-error @below {{'gpu_tile.cluster_mask' op axes must be distinct and 0, 1 or 2, found [1, 1]}}
  %x = "gpu_tile.cluster_mask"() {axes = array<i32: 1, 1>} : () -> i32
  return
}

// -----
func.func @a_fourth_axis() {
  // expected-error @below {{'gpu_tile.cluster_mask' op axes must be distinct and 0, 1 or 2, found [0, 3]}}
  %x = "gpu_tile.cluster_mask"() {axes = array<i32: 0, 3>} : () -> i32
  return
}

// -----
func.func @unknown_order() {
  // expected-error @below {{'gpu_tile.cluster_sync' op attribute 'order' must be one of 'acq_rel', 'relaxed', found "seq_cst"}}
  "gpu_tile.cluster_sync"() {order = "seq_cst"} : () -> ()
  return
}

// -----
func.func @store_of_several(%v: tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, %b: !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) {
  // expected-error @below {{'gpu_tile.cluster_store' op value must be one element, found 4}}
  "gpu_tile.cluster_store"(%v, %b) : (tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) -> ()
  return
}

// -----
func.func @store_into_another_type(%v: tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, %b: !gpu_tile.buffer<tensor<8xi32>, #gpu_tile.shared<"(8):(1)">>) {
  // expected-error @below {{'gpu_tile.cluster_store' op dst must be a row of f32, found !gpu_tile.buffer<tensor<8xi32>, #gpu_tile.shared<"(8):(1)">>}}
  "gpu_tile.cluster_store"(%v, %b) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<8xi32>, #gpu_tile.shared<"(8):(1)">>) -> ()
  return
}

// -----
func.func @send_into_another_shape(%v: tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, %b: !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) {
  // expected-error @below {{'gpu_tile.cluster_send' op dst must be a buffer for a stripe of tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, found !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>}}
  "gpu_tile.cluster_send"(%v, %b) {axis = 0 : i32} : (tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) -> ()
  return
}

// -----
func.func @send_along_no_axis(%v: tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, %b: !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) {
  // expected-error @below {{'gpu_tile.cluster_send' op axis 1 is out of range for rank 1}}
  "gpu_tile.cluster_send"(%v, %b) {axis = 1 : i32} : (tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>, !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) -> ()
  return
}
