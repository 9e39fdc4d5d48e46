// The place of an extreme across warps: each warp searches its part, and warps meet once for both.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

!x = tensor<256xf32, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>
!at = tensor<256xi32, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(64):(0) V():()">>
!place = tensor<i32, #gpu_tile.layout<"T(64):(0) V():()">>

// CHECK-LABEL: @of_a_row
func.func @of_a_row(%x: !x, %y: memref<?xf32, strided<[1]>>, %z: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  // CHECK: %[[AT:.*]] = "tile.iota"
  // CHECK: %[[M:.*]] = "gpu_tile.warp_reduce"(%[[X:.*]]) ({
  // CHECK: arith.maximumf
  // CHECK: %[[S:.*]] = "gpu_tile.warp_spread"(%[[M]]) {axis = 0 : i32}
  // CHECK: %[[E:.*]] = arith.cmpf oeq, %[[X]], %[[S]]
  // CHECK: %[[N:.*]] = arith.cmpf une, %[[X]], %[[X]]
  // CHECK: %[[H:.*]] = arith.ori %[[E]], %[[N]]
  // CHECK: %[[C:.*]] = arith.select %[[H]], %[[AT]]
  // CHECK: %[[P:.*]] = "gpu_tile.warp_reduce"(%[[C]]) ({
  // CHECK: arith.minsi
  // CHECK: "gpu_tile.buffer_store"(%[[M]]
  // CHECK: "gpu_tile.buffer_store"(%[[P]]
  // CHECK: %[[MS:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[PS:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[V:.*]] = "tile.reduce"(%[[MS]])
  // CHECK: %[[NUMBER:.*]] = tensor.extract %[[V]][]
  // CHECK: %[[B:.*]] = "tile.broadcast"(%[[V]])
  // CHECK: arith.cmpf oeq, %[[MS]], %[[B]]
  // CHECK: %[[D:.*]] = arith.select %{{.*}}, %[[PS]]
  // CHECK: %[[I:.*]] = "tile.reduce"(%[[D]])
  // CHECK: "tile.store"(%[[I]], %{{.*}}
  // CHECK: tensor.splat %[[NUMBER]] : tensor<f32,
  %c0 = arith.constant 0 : index
  %most = arith.constant dense<2147483647> : !at
  %at = "tile.iota"() {axis = 0 : i32} : () -> !at
  %m = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!x) -> !one
  %n = tensor.extract %m[] : !one
  %s = tensor.splat %n : !x
  %same = arith.cmpf oeq, %x, %s : !x
  %none = arith.cmpf une, %x, %x : !x
  %holds = arith.ori %same, %none : tensor<256xi1, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>
  %c = arith.select %holds, %at, %most : tensor<256xi1, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>, !at
  %i = "tile.reduce"(%c) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.minsi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!at) -> !place
  "tile.store"(%i, %z, %c0) {dims = array<i32>, options = {}} : (!place, memref<?xi32, strided<[1]>>, index) -> ()
  %v = tensor.splat %n : !one
  "tile.store"(%v, %y, %c0) {dims = array<i32>, options = {}} : (!one, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// Who asks for the extreme before the place is known has it from the first of two reductions.
// CHECK-LABEL: @asked_between
func.func @asked_between(%x: !x, %y: memref<?xf32, strided<[1]>>, %z: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  // CHECK-NOT: gpu_tile.warp_spread
  %c0 = arith.constant 0 : index
  %most = arith.constant dense<2147483647> : !at
  %at = "tile.iota"() {axis = 0 : i32} : () -> !at
  %m = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maxnumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!x) -> !one
  "tile.store"(%m, %y, %c0) {dims = array<i32>, options = {}} : (!one, memref<?xf32, strided<[1]>>, index) -> ()
  %s = "tile.broadcast"(%m) {dims = array<i32>} : (!one) -> !x
  %holds = arith.cmpf uge, %x, %s : !x
  %c = arith.select %holds, %at, %most : tensor<256xi1, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>, !at
  %i = "tile.reduce"(%c) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.minsi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!at) -> !place
  "tile.store"(%i, %z, %c0) {dims = array<i32>, options = {}} : (!place, memref<?xi32, strided<[1]>>, index) -> ()
  return
}

// Elements that are greater than another number are no search.
// CHECK-LABEL: @of_another_number
func.func @of_another_number(%x: !x, %limit: f32) -> !place attributes {tile.kernel} {
  // CHECK-NOT: gpu_tile.warp_spread
  %most = arith.constant dense<2147483647> : !at
  %at = "tile.iota"() {axis = 0 : i32} : () -> !at
  %s = tensor.splat %limit : !x
  %holds = arith.cmpf uge, %x, %s : !x
  %c = arith.select %holds, %at, %most : tensor<256xi1, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>, !at
  %i = "tile.reduce"(%c) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.minsi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!at) -> !place
  return %i : !place
}
