// A number that reductions are added to in a loop: warps meet behind it.
// RUN: tilec opt %s --passes carry-partials --target sm_90a | filecheck %s

!row = tensor<2048xf32, #gpu_tile.layout<"T(128):(4@0) V(4,4):(1@0,512@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// total = total * a + b * sum(x), as an online softmax joins blocks. Nothing uses the loop's own
// reduction any more: the number is yielded as it came.
// CHECK-LABEL: @scaled_both_ways
func.func @scaled_both_ways(%x: memref<?xf32, strided<[1]>>, %n: index, %a: f32, %b: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) -> (f32, tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>)
  // CHECK: %[[LESS:.*]] = arith.mulf %[[ACC]], %{{.*}} : tensor<128xf32
  // CHECK: %[[OWN:.*]] = "gpu_tile.thread_reduce"
  // CHECK: %[[MINE:.*]] = arith.mulf %[[OWN]], %{{.*}} : tensor<128xf32
  // CHECK: %[[NEXT:.*]] = arith.addf %[[LESS]], %[[MINE]]
  // CHECK: scf.yield %[[OLD]], %[[NEXT]]
  // CHECK: %[[ALL:.*]] = "tile.reduce"(%[[R]]#1)
  // CHECK: %[[SUM:.*]] = tensor.extract %[[ALL]]
  // CHECK: return %[[SUM]]
  %r = scf.for %i = %c0 to %n step %c2048 iter_args(%total = %zero) -> (f32) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %sum = tensor.extract %s[] : !one
    %mine = arith.mulf %sum, %b : f32
    %less = arith.mulf %total, %a : f32
    %next = arith.addf %less, %mine : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// A maximum starts as anything: every thread starts with it.
// CHECK-LABEL: @maximum
func.func @maximum(%x: memref<?xf32, strided<[1]>>, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  // CHECK: %[[INIT:.*]] = tensor.splat %{{.*}} : tensor<128xf32
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[ACC:.*]] = %[[INIT]])
  // CHECK: arith.maximumf %[[ACC]], %{{.*}} : tensor<128xf32
  %r = scf.for %i = %c0 to %n step %c2048 iter_args(%most = %least) -> (f32) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    scf.yield %next : f32
  }
  return %r : f32
}
