// What the stripes of a program have goes through the shared memory of the cluster; all have begun then.
// RUN: tilec opt %s --passes split-reductions --target sm_90a | filecheck %s

!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
!all = tensor<4xf32, #gpu_tile.layout<"T(128):(0) V(4):(1@0)">>

// CHECK-LABEL: @twice
// CHECK-SAME: (%[[V:.*]]: tensor<f32
func.func @twice(%v: !one) attributes {tile.kernel, tile.stripes = 4 : i32} {
  // CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<4xf32>
  // CHECK: "gpu_tile.cluster_store"(%[[V]], %[[B]])
  // CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
  // CHECK: "gpu_tile.buffer_load"(%[[B]])
  %a = "tile.gather_stripes"(%v) : (!one) -> !all
  // CHECK-NOT: relaxed
  // CHECK: %[[C:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.cluster_store"(%[[V]], %[[C]])
  // CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
  // CHECK: "gpu_tile.buffer_load"(%[[C]])
  // CHECK-NOT: tile.gather_stripes
  %b = "tile.gather_stripes"(%v) : (!one) -> !all
  return
}
