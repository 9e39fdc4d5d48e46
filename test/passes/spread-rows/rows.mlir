// A row of 131072 elements becomes eight of 16384, one a CTA; what they reduce is reduced again.
// RUN: tilec opt %s --passes spread-rows --target sm_90a --num-warps 16 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @softmax
// CHECK-SAME: tile.stripes = 8 : i32
func.func @softmax(%a: !m, %b: !m, %w: !v) attributes {tile.kernel} {
  // CHECK: %[[STRIPE:.*]] = "tile.stripe_id"()
  // CHECK: %[[SIZE:.*]] = arith.constant 16384 : index
  // CHECK: %[[FIRST:.*]] = arith.muli %[[STRIPE]], %[[SIZE]]
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[FROM:.*]] = arith.addi %{{.*}}, %[[FIRST]]
  // CHECK: %[[X:.*]] = "tile.load"(%{{.*}}, %{{.*}}, %[[FROM]]) {{.*}} -> tensor<16384xf32>
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<131072xf32>
  // CHECK: "tile.load"(%{{.*}}) {{.*}} -> tensor<16384xf32>
  %y = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<131072xf32>
  // CHECK: %[[MINE:.*]] = "tile.reduce"(%[[X]])
  // CHECK: -> tensor<f32>
  // CHECK: %[[ALL:.*]] = "tile.gather_stripes"(%[[MINE]]) : (tensor<f32>) -> tensor<8xf32>
  // CHECK: %[[SUM:.*]] = "tile.reduce"(%[[ALL]])
  // CHECK: arith.addf
  // CHECK: {axis = 0 : i32} : (tensor<8xf32>) -> tensor<f32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<131072xf32>) -> tensor<f32>
  // CHECK: "tile.broadcast"(%[[SUM]]) {{.*}} -> tensor<16384xf32>
  %t = "tile.broadcast"(%s) {dims = array<i32>} : (tensor<f32>) -> tensor<131072xf32>
  // CHECK: dense<2.000000e+00> : tensor<16384xf32>
  %two = arith.constant dense<2.0> : tensor<131072xf32>
  %u = arith.mulf %t, %two : tensor<131072xf32>
  %z = arith.divf %x, %u : tensor<131072xf32>
  %zz = arith.mulf %z, %y : tensor<131072xf32>
  // CHECK: "tile.store"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {{.*}} : (tensor<16384xf32>
  "tile.store"(%zz, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<131072xf32>, !m, index, index) -> ()
  return
}

// Columns count on from the stripe's first; the result is stored once; a tile of one row has two dimensions.
// CHECK-LABEL: @last_negative
func.func @last_negative(%a: !m, %b: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  // CHECK: %[[STRIPE:.*]] = "tile.stripe_id"()
  // CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[STRIPE]], %{{.*}}
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<1x65536xf32>
  // CHECK: %[[I:.*]] = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x16384xi32>
  %i = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x65536xi32>
  %zero = arith.constant dense<0.0> : tensor<1x65536xf32>
  %none = arith.constant dense<-1> : tensor<1x65536xi32>
  %is = arith.cmpf olt, %x, %zero : tensor<1x65536xf32>
  // CHECK: %[[AT:.*]] = arith.addi %[[I]], %{{.*}} : tensor<1x16384xi32>
  // CHECK: arith.select %{{.*}}, %[[AT]], %{{.*}}
  %at = arith.select %is, %i, %none : tensor<1x65536xi1>, tensor<1x65536xi32>
  // CHECK: %[[MINE:.*]] = "tile.reduce"
  // CHECK: -> tensor<1xi32>
  // CHECK: %[[FLAT:.*]] = "tile.reshape"(%[[MINE]]) : (tensor<1xi32>) -> tensor<i32>
  // CHECK: "tile.gather_stripes"(%[[FLAT]]) : (tensor<i32>) -> tensor<4xi32>
  // CHECK: "tile.reshape"(%{{.*}}) : (tensor<i32>) -> tensor<1xi32>
  %m = "tile.reduce"(%at) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxsi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 1 : i32} : (tensor<1x65536xi32>) -> tensor<1xi32>
  // CHECK: scf.if %[[IS_FIRST]]
  // CHECK-NEXT: "tile.store"
  "tile.store"(%m, %b, %row) {dims = array<i32: 0>, options = {}} : (tensor<1xi32>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
