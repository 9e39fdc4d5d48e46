// A tile that a loop adds up, reduced behind it: one register a thread is carried.
// RUN: tilec opt %s --passes carry-partials --target sm_90a | filecheck %s

!row = tensor<2048xf32, #gpu_tile.layout<"T(128):(4@0) V(4,4):(1@0,512@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// Scaled by one number in each iteration; the other loop-carried value is what it was.
// CHECK-LABEL: @scaled
func.func @scaled(%x: memref<?xf32, strided<[1]>>, %n: index, %shrink: f32) -> (!one, index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %zero = arith.constant dense<0.0> : !row
  // CHECK: %[[INIT:.*]] = arith.constant dense<0.000000e+00> : tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
  // CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %[[ACC:.*]] = %[[INIT]])
  %r:2 = scf.for %i = %c0 to %n step %c2048 iter_args(%acc = %zero, %other = %c0) -> (!row, index) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %factor = tensor.splat %shrink : !row
    %less = arith.mulf %factor, %acc fastmath<contract> : !row
    %next = arith.addf %less, %v fastmath<contract> : !row
    %more = arith.addi %other, %i : index
    // CHECK: %[[F:.*]] = tensor.splat %{{.*}} : tensor<128xf32, {{.*}}>
    // CHECK: %[[LESS:.*]] = arith.mulf %[[F]], %[[ACC]] fastmath<contract>
    // CHECK: %[[OWN:.*]] = "gpu_tile.thread_reduce"(%{{.*}}) ({
    // CHECK: arith.addf
    // CHECK: {axis = 0 : i32} : {{.*}} -> tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
    // CHECK: %[[NEXT:.*]] = arith.addf %[[LESS]], %[[OWN]] fastmath<contract>
    // CHECK: scf.yield %[[OLD]], %{{.*}}, %[[NEXT]]
    scf.yield %next, %more : !row, index
  }
  // CHECK: "tile.reduce"(%[[R]]#2)
  %s = "tile.reduce"(%r#0) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!row) -> !one
  return %s, %r#1 : !one, index
}

// Rows of 700: the second half of the threads' second vectors are phantoms; a maximum may start
// as anything.
// CHECK-LABEL: @maximum_of_a_ragged_tile
func.func @maximum_of_a_ragged_tile(%x: memref<?xf32, strided<[1]>>, %n: index) -> !one attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c700 = arith.constant 700 : index
  %least = arith.constant dense<-1.0> : tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}}, %[[ACC:.*]] = %{{.*}}) -> {{.*}}, tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
  // CHECK: arith.maximumf %[[ACC]]
  %r = scf.for %i = %c0 to %n step %c700 iter_args(%acc = %least) -> (tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
    %next = arith.maximumf %acc, %v : tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
    scf.yield %next : tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.maximumf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (tensor<700xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>) -> !one
  return %s : !one
}

// Columns: rows that one thread holds are added up, the others behind the loop.
// CHECK-LABEL: @along_the_first_axis
func.func @along_the_first_axis(%v: tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>, %n: index) -> tensor<64xf32, #gpu_tile.layout<"T(16,8):(4@0,0) V(4):(1@0)">> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>
  // CHECK: "gpu_tile.thread_reduce"
  // CHECK: {axis = 0 : i32} : {{.*}} -> tensor<8x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4):(1@1)">>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>) {
    %next = arith.addf %acc, %v : tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>
    scf.yield %next : tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (tensor<32x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,4):(1@1,8@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(16,8):(4@0,0) V(4):(1@0)">>
  return %s : tensor<64xf32, #gpu_tile.layout<"T(16,8):(4@0,0) V(4):(1@0)">>
}
