// Each stripe of a row scans its own, and combines what the stripes in front come to with that.
// RUN: tilec opt %s --passes spread-rows --target sm_90a --num-warps 16 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @running_sums
// CHECK-SAME: tile.stripes = 4 : i32
func.func @running_sums(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[STRIPE:.*]] = "tile.stripe_id"()
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[X:.*]] = "tile.load"(%{{.*}}) {{.*}} -> tensor<16384xf32>
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  // CHECK: %[[OWN:.*]] = "tile.scan"(%[[X]])
  // CHECK: tensor<16384xf32>) -> tensor<16384xf32>
  // CHECK: %[[MINE:.*]] = "tile.reduce"(%[[X]])
  // CHECK: %[[ALL:.*]] = "tile.gather_stripes"(%[[MINE]]) : (tensor<f32>) -> tensor<4xf32>
  // CHECK: %[[ALONG:.*]] = "tile.scan"(%[[ALL]])
  // CHECK: reverse = false
  // CHECK: %[[NUMBER:.*]] = "tile.iota"() {axis = 0 : i32} : () -> tensor<4xi32>
  // CHECK: arith.addi %{{.*}}, %c-1
  // CHECK: %[[IS_BEFORE:.*]] = arith.cmpi eq, %[[NUMBER]]
  // CHECK: %[[BEFORE:.*]]:2 = "tile.reduce"(%[[IS_BEFORE]], %[[ALONG]])
  // CHECK: %[[EVERYWHERE:.*]] = "tile.broadcast"(%[[BEFORE]]#1) {{.*}} -> tensor<16384xf32>
  // CHECK: %[[BOTH:.*]] = arith.addf %[[EVERYWHERE]], %[[OWN]] : tensor<16384xf32>
  // CHECK: %[[FOLLOWS:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i32
  // CHECK: %[[RESULT:.*]] = arith.select %[[FOLLOWS]], %[[BOTH]], %[[OWN]]
  %s = "tile.scan"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32, reverse = false} : (tensor<65536xf32>) -> tensor<65536xf32>
  // CHECK: "tile.store"(%[[RESULT]]
  "tile.store"(%s, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<65536xf32>, !m, index, index) -> ()
  return
}

// From the end on: the stripes behind come to what is combined, and the last has none.
// CHECK-LABEL: @from_the_end
// CHECK: "tile.gather_stripes"
// CHECK: arith.addi %{{.*}}, %c1
// CHECK: arith.cmpi slt, %{{.*}}, %c3_i32
func.func @from_the_end(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  %s = "tile.scan"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %two = arith.constant 2.0 : f32
    %t = arith.mulf %two, %p : f32
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32, reverse = true} : (tensor<65536xf32>) -> tensor<65536xf32>
  "tile.store"(%s, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<65536xf32>, !m, index, index) -> ()
  return
}
