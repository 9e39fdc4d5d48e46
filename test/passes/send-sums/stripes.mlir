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
  %sum = "tile.sum_stripes"(%mine) {axis = 0 : i32, merges = ["arith.addf"]} : (!c) -> !s
  "tile.store"(%sum, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Two sums of 40960 bytes come one after the other, through one buffer that all have read.
!rows = tensor<1280x8xi32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,80):(1@1,8@0,16@0)">>
!half = tensor<640x8xi32, #gpu_tile.layout<"T(8,4):(1@1,1@0) V(160):(4@0)">>
!row = memref<?x?xi32, strided<[?, 1]>>
// CHECK-LABEL: @turns
// CHECK: %[[X:.*]] = "gpu_tile.convert_layout"(%arg0)
// CHECK: %[[Y:.*]] = "gpu_tile.convert_layout"(%arg1)
// CHECK: %[[PARTS:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<2x640x8xi32>
// CHECK-NOT: "gpu_tile.alloc"
// CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK: "gpu_tile.cluster_send"(%[[X]]
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[A:.*]] = arith.addi
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: "gpu_tile.cluster_send"(%[[Y]]
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[B:.*]] = arith.addi
// CHECK: "tile.store"(%[[A]]
// CHECK: "tile.store"(%[[B]]
func.func @turns(%x: !rows, %y: !rows, %to: !row, %at: index) attributes {tile.kernel, tile.stripes = 2 : i32} {
  %a, %b = "tile.sum_stripes"(%x, %y) {axis = 0 : i32, merges = ["arith.addi", "arith.addi"]} : (!rows, !rows) -> (!half, !half)
  "tile.store"(%a, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!half, !row, index, index) -> ()
  "tile.store"(%b, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!half, !row, index, index) -> ()
  return
}

// Pairs of two lanes become four neighbours of one, which are sent at once; so do single sums of
// four lanes, along columns.
!pairs = tensor<16x64xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,8):(1@1,8@0,8@1)">>
!few = tensor<4x64xf32, #gpu_tile.layout<"T(16,2):(4@1,1@0) V(4,2):(1@1,2@0)">>
!down = tensor<16x16xf32, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,8@1)">>
// CHECK-LABEL: @vectors
// CHECK: %[[WIDE:.*]] = "gpu_tile.convert_layout"(%arg0) {{.*}}T(2,2,8):(8@1,4@1,1@0) V(4,2,4):(1@1,8@0,16@1)
// CHECK: "gpu_tile.cluster_send"(%[[WIDE]]
// CHECK: %[[LONG:.*]] = "gpu_tile.convert_layout"(%arg1) {{.*}}T(4,2,2,2):(2@1,8@0,1@1,4@0) V(4,8):(1@0,8@1)
// CHECK: "gpu_tile.cluster_send"(%[[LONG]]
func.func @vectors(%x: !pairs, %y: !pairs, %to: memref<?x?xf32, strided<[?, 1]>>, %turned: memref<?x?xf32, strided<[1, ?]>>, %at: index) attributes {tile.kernel, tile.stripes = 4 : i32} {
  %a = "tile.sum_stripes"(%x) {axis = 0 : i32, merges = ["arith.addf"]} : (!pairs) -> !few
  %b = "tile.sum_stripes"(%y) {axis = 1 : i32, merges = ["arith.addf"]} : (!pairs) -> !down
  "tile.store"(%a, %to, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!few, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  "tile.store"(%b, %turned, %at, %at) {dims = array<i32: 0, 1>, options = {}} : (!down, memref<?x?xf32, strided<[1, ?]>>, index, index) -> ()
  return
}

// The least of both CTAs, and the place that goes with it: the first one's where both are equal.
!v = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!p = tensor<64xi32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!hv = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!hp = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
// CHECK-LABEL: @least
// CHECK: %[[A:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xf32
// CHECK: %[[B:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xf32
// CHECK: %[[LEAST:.*]] = arith.minimumf %[[A]], %[[B]]
// CHECK: %[[P:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xi32
// CHECK: %[[C:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xf32
// CHECK: %[[Q:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xi32
// CHECK: %[[D:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<32xf32
// CHECK: %[[WINS:.*]] = arith.cmpf olt, %[[D]], %[[C]]
// CHECK: %[[PLACE:.*]] = arith.select %[[WINS]], %[[Q]], %[[P]]
// CHECK: "tile.store"(%[[LEAST]]
// CHECK: "tile.store"(%[[PLACE]]
func.func @least(%mine: !v, %place: !p, %to: memref<?xf32, strided<[1]>>, %places: memref<?xi32, strided<[1]>>, %at: index) attributes {tile.kernel, tile.stripes = 2 : i32} {
  %a, %b = "tile.sum_stripes"(%mine, %place) {axis = 0 : i32, merges = ["arith.minimumf", "olt 0"]} : (!v, !p) -> (!hv, !hp)
  "tile.store"(%a, %to, %at) {dims = array<i32: 0>, options = {}} : (!hv, memref<?xf32, strided<[1]>>, index) -> ()
  "tile.store"(%b, %places, %at) {dims = array<i32: 0>, options = {}} : (!hp, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
