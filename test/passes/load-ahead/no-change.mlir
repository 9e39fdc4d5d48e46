// Loops that load as they did.
// RUN: tilec opt %s --passes load-ahead --target sm_90a | filecheck %s
// CHECK-NOT: scf.if

!row = tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
!long = tensor<8192xf32, #gpu_tile.layout<"T(128):(4@0) V(4,16):(1@0,512@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// No thread waits for another one: ptxas unrolls the loop.
func.func @added_up(%x: memref<?xf32, strided<[1]>>, %n: index) -> !row attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant dense<0.0> : !row
  %r = scf.for %i = %c0 to %n step %c1024 iter_args(%acc = %zero) -> (!row) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %next = arith.addf %acc, %v : !row
    scf.yield %next : !row
  }
  return %r : !row
}

// The iteration writes the array: the next one may read that.
func.func @written(%x: memref<?xf32, strided<[1]>>, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %n step %c512 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %m = tensor.splat %one : !row
    "tile.store"(%m, %x, %i) {dims = array<i32: 0>, options = {}} : (!row, memref<?xf32, strided<[1]>>, index) -> ()
  }
  return
}

// 64 registers of a thread, for one tile more.
func.func @long(%x: memref<?xf32, strided<[1]>>, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c8192 = arith.constant 8192 : index
  %r = scf.for %i = %c0 to %n step %c8192 iter_args(%most = %least) -> (f32) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !long
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!long) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// The author demands a ring of copies.
func.func @stages(%x: memref<?xf32, strided<[1]>>, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %r = scf.for %i = %c0 to %n step %c1024 iter_args(%most = %least) -> (f32) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    scf.yield %next : f32
  } {tile.stages = 3 : i32}
  return %r : f32
}

// The author loads ahead.
func.func @ahead_already(%x: memref<?xf32, strided<[1]>>, %n: index, %least: f32, %first: !row) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %r:2 = scf.for %i = %c0 to %n step %c1024 iter_args(%most = %least, %v = %first) -> (f32, !row) {
    %at = arith.addi %i, %c1024 : index
    %w = "tile.load"(%x, %at) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    scf.yield %next, %w : f32, !row
  }
  return %r#0 : f32
}
