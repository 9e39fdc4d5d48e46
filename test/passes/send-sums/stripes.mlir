// Each of four CTAs sends a stripe of what it has to each, and adds up what it gets.
// RUN: tilec opt %s --passes send-sums --target sm_90a --num-warps 1 | filecheck %s

!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!s = tensor<4x8xf32, #gpu_tile.layout<"T(8,4):(1@1,1@0) V():()">>

// CHECK-LABEL: @quarters
// CHECK: %[[ALL:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<4x4x8xf32>
// CHECK: %[[PART:.*]] = "tile.stripe_id"()
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[PART]] : index to i32
// CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK: %[[MINE:.*]] = "gpu_tile.slot"(%[[ALL]], %[[NUMBER]])
// CHECK: "gpu_tile.cluster_send"(%arg0, %[[MINE]]) {axis = 0 : i32}
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[A:.*]] = "gpu_tile.buffer_load"
// CHECK: %[[B:.*]] = "gpu_tile.buffer_load"
// CHECK: %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[C:.*]] = "gpu_tile.buffer_load"
// CHECK: %[[ABC:.*]] = arith.addf %[[AB]], %[[C]]
// CHECK: %[[D:.*]] = "gpu_tile.buffer_load"
// CHECK: %[[SUM:.*]] = arith.addf %[[ABC]], %[[D]]
// CHECK: "tile.store"(%[[SUM]]
func.func @quarters(%mine: !c, %to: memref<?x?xf32, strided<[?, 1]>>, %at: index) attributes {tile.kernel, tile.stripes = 4 : i32} {
  %sum = "tile.sum_stripes"(%mine) {axis = 0 : i32} : (!c) -> !s
  "tile.store"(%sum, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Two sums of 40960 bytes come one after the other, through one buffer that all have read.
!rows = tensor<1280x8xi32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,80):(1@1,8@0,16@0)">>
!half = tensor<640x8xi32, #gpu_tile.layout<"T(8,4):(1@1,1@0) V(160):(4@0)">>
!row = memref<?x?xi32, strided<[?, 1]>>
// CHECK-LABEL: @turns
// CHECK: %[[PARTS:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<2x640x8xi32>
// CHECK-NOT: "gpu_tile.alloc"
// CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK: "gpu_tile.cluster_send"(%arg0
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[A:.*]] = arith.addi
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: "gpu_tile.cluster_send"(%arg1
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[B:.*]] = arith.addi
// CHECK: "tile.store"(%[[A]]
// CHECK: "tile.store"(%[[B]]
func.func @turns(%x: !rows, %y: !rows, %to: !row, %at: index) attributes {tile.kernel, tile.stripes = 2 : i32} {
  %a, %b = "tile.sum_stripes"(%x, %y) {axis = 0 : i32} : (!rows, !rows) -> (!half, !half)
  "tile.store"(%a, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!half, !row, index, index) -> ()
  "tile.store"(%b, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!half, !row, index, index) -> ()
  return
}
