// Pure ops of ours: equal ones are merged, unused ones dropped, invariant ones moved out of loops.
// RUN: tilec opt %s --passes simplify | filecheck %s

!t = tensor<64xi32>

// CHECK-LABEL: @merged
// CHECK: [[I:%[0-9]+]] = "tile.iota"() {axis = 0 : i32}
// CHECK-NOT: tile.iota
// CHECK: arith.addi [[I]], [[I]]
func.func @merged(%y: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.iota"() {axis = 0 : i32} : () -> !t
  %b = "tile.iota"() {axis = 0 : i32} : () -> !t
  %unused = "tile.iota"() {axis = 0 : i32} : () -> tensor<32xi32>
  %s = arith.addi %a, %b : !t
  "tile.store"(%s, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
  return
}

// CHECK-LABEL: @hoisted
// CHECK: tile.iota
// CHECK: scf.for
// CHECK-NOT: tile.iota
// CHECK: return
func.func @hoisted(%y: memref<?xi32, strided<[1]>>, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : !t
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!t) {
    %a = "tile.iota"() {axis = 0 : i32} : () -> !t
    %s = arith.addi %acc, %a : !t
    scf.yield %s : !t
  }
  "tile.store"(%sum, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
  return
}

// Loads of memory that something else may write stay two, and where they are.
// CHECK-LABEL: @memory
// CHECK: scf.for
// CHECK: tile.load
// CHECK: tile.load
// CHECK: return
func.func @memory(%x: memref<?xi32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> !t
    "tile.store"(%a, %y, %i) {dims = array<i32: 0>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
    %b = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> !t
    "tile.store"(%b, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, memref<?xi32, strided<[1]>>, index) -> ()
    scf.yield
  }
  return
}

// Reductions are equal if their regions are, values in them known by their order.
// CHECK-LABEL: @regions
// CHECK: %[[M:.*]] = "tile.reduce"
// CHECK: arith.maximumf
// CHECK: %[[S:.*]] = "tile.reduce"
// CHECK: arith.addf
// CHECK-NOT: "tile.reduce"
// CHECK: arith.mulf %[[M]], %[[M]]
func.func @regions(%x: tensor<64xf32>, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<f32>
  %b = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<f32>
  %c = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<f32>
  %ab = arith.mulf %a, %b : tensor<f32>
  %abc = arith.mulf %ab, %c : tensor<f32>
  "tile.store"(%abc, %y, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// What a region takes from outside tells it from another.
// CHECK-LABEL: @regions_from_outside
// CHECK-COUNT-2: "tile.reduce"
func.func @regions_from_outside(%x: tensor<64xf32>, %u: f32, %v: f32, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    %s = arith.minimumf %r, %u : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<f32>
  %b = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    %s = arith.minimumf %r, %v : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<f32>
  %ab = arith.mulf %a, %b : tensor<f32>
  "tile.store"(%ab, %y, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
