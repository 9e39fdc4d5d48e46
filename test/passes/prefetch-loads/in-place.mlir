// A loop that stores where it has loaded, along rows or at a multiple of its counter, and goes on: no later iteration
// reads what one stores, so loads come ahead. One that loads behind its store, stores less far on, or stores where it did, stays.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 1 | filecheck %s

!x = memref<?x32xf32, strided<[32, 1]>>
!line = memref<?xi32, strided<[1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!one = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>

// CHECK-LABEL: func.func @rows(
// CHECK: scf.for
// CHECK-COUNT-8: "tile.load"(%arg0
// CHECK: "tile.store"(%{{.*}}, %arg0
func.func @rows(%x: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  scf.for %i = %c0 to %n step %c1 {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %w = arith.mulf %v, %v : !t
    "tile.store"(%w, %x, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @columns(
// CHECK: scf.for
// CHECK-COUNT-8: "tile.load"(%arg0
// CHECK: "tile.store"(%{{.*}}, %arg0
func.func @columns(%x: !line, %n: index, %column: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0> : !one
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (!one) {
    %row = arith.muli %i, %c64 : index
    %at = arith.addi %row, %column : index
    %v = "tile.load"(%x, %at) {dims = array<i32>, options = {}, padding = 0 : i32} : (!line, index) -> !one
    %next = arith.addi %s, %v : !one
    "tile.store"(%next, %x, %at) {dims = array<i32>, options = {}} : (!one, !line, index) -> ()
    scf.yield %next : !one
  }
  return
}

// CHECK-LABEL: func.func @behind(
// CHECK-COUNT-1: "tile.load"
// CHECK-NOT: "tile.load"
// CHECK-LABEL: func.func @nearer(
func.func @behind(%x: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  %zero = arith.constant dense<0.0> : !t
  scf.for %i = %c0 to %n step %c1 {
    "tile.store"(%zero, %x, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %w = arith.mulf %v, %v : !t
    "tile.store"(%w, %x, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  }
  return
}

// CHECK-COUNT-1: "tile.load"
// CHECK-NOT: "tile.load"
func.func @nearer(%x: !line, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %n step %c16 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (!line, index) -> tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
    "tile.store"(%v, %x, %i) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, !line, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @stays(
// CHECK: scf.for
// CHECK-COUNT-1: "tile.load"
// CHECK-NOT: "tile.load"
func.func @stays(%x: !x, %row: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  scf.for %i = %c0 to %n step %c1 {
    %v = "tile.load"(%x, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %w = arith.mulf %v, %v : !t
    "tile.store"(%w, %x, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  }
  return
}
