// What is carried as it was.
// RUN: tilec opt %s --passes carry-partials --target sm_90a | filecheck %s
// CHECK-NOT: thread_reduce

!row = tensor<2048xf32, #gpu_tile.layout<"T(128):(4@0) V(4,4):(1@0,512@0)">>
!half = tensor<2048xf16, #gpu_tile.layout<"T(128):(4@0) V(4,4):(1@0,512@0)">>
!short = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// The loop itself reads it: the next iteration needs the maximum.
func.func @read_in_the_loop(%v: !row, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%most = %least, %gap = %least) -> (f32, f32) {
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    %further = arith.subf %most, %gap : f32
    scf.yield %next, %further : f32, f32
  }
  return %r#0 : f32
}

// A sum that starts as one would have as many ones as threads.
func.func @starts_as_one(%v: !row, %n: index) -> !one attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ones = arith.constant dense<1.0> : !row
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %ones) -> (!row) {
    %next = arith.addf %acc, %v : !row
    scf.yield %next : !row
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!row) -> !one
  return %s : !one
}

// Factors that differ from element to element belong to their elements.
func.func @scaled_by_a_tile(%v: !row, %factors: !row, %n: index) -> !one attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !row
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!row) {
    %less = arith.mulf %acc, %factors : !row
    %next = arith.addf %less, %v : !row
    scf.yield %next : !row
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!row) -> !one
  return %s : !one
}

// Added up otherwise than reduced.
func.func @largest_of_sums(%v: !row, %n: index) -> !one attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !row
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!row) {
    %next = arith.addf %acc, %v : !row
    scf.yield %next : !row
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.maximumf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!row) -> !one
  return %s : !one
}

// Sums of 16 bits, in which the longer of two chains loses more.
func.func @half_precision(%v: !half, %n: index) -> tensor<f16, #gpu_tile.layout<"T(128):(0) V():()">> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !half
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!half) {
    %next = arith.addf %acc, %v : !half
    scf.yield %next : !half
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f16, %q: f16):
    %t = arith.addf %p, %q : f16
    gpu.yield %t : f16
  }) {axis = 0 : i32} : (!half) -> tensor<f16, #gpu_tile.layout<"T(128):(0) V():()">>
  return %s : tensor<f16, #gpu_tile.layout<"T(128):(0) V():()">>
}

// A thread has one element as it is.
func.func @one_element_a_thread(%v: !short, %n: index) -> !one attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !short
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!short) {
    %next = arith.addf %acc, %v : !short
    scf.yield %next : !short
  }
  %s = "tile.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!short) -> !one
  return %s : !one
}

// Reductions inside one warp take shuffles alone.
func.func @inside_a_warp(%v: tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>, %n: index) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (f32) {
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>) -> tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>
    %sum = tensor.extract %s[] : tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>
    %next = arith.addf %total, %sum : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// A thread would hold 64 columns of it; it has 4 as it is.
func.func @wide_rows(%v: tensor<4x2048xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4,16):(1@1,128@1)">>, %n: index) -> tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>) {
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (tensor<4x2048xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4,16):(1@1,128@1)">>) -> tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>
    %next = arith.addf %acc, %s : tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>
    scf.yield %next : tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>
  }
  return %r : tensor<2048xf32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,16):(1@0,128@0)">>
}

// What each row of the carried tile is scaled by differs.
func.func @scaled_by_a_row(%v: tensor<16x128xf32, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,2):(1@1,8@0)">>, %factors: tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>, %n: index) -> tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>) {
    %less = arith.mulf %acc, %factors : tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (tensor<16x128xf32, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,2):(1@1,8@0)">>) -> tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
    %next = arith.addf %less, %s : tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
    scf.yield %next : tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
  }
  return %r : tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
}
