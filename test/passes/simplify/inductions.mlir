// What a loop adds the same to in each iteration follows from its variable.
// RUN: tilec opt %s --passes simplify | filecheck %s

!row = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @up
// CHECK: scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK-NEXT: %[[GROWN:.*]] = arith.muli %[[I]], %c64
// CHECK-NEXT: %[[AT:.*]] = arith.addi %{{.*}}, %[[GROWN]]
// CHECK-NEXT: "tile.store"(%{{.*}}, %{{.*}}, %[[AT]])
func.func @up(%y: !row, %first: index, %n: index, %x: tensor<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 iter_args(%k = %first) -> (index) {
    "tile.store"(%x, %y, %k) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
    %c64 = arith.constant 64 : index
    %next = arith.addi %k, %c64 : index
    scf.yield %next : index
  }
  return
}

// In i32, down, by the parts of a step, from a beginning that is not 0; behind the loop from its ends.
// CHECK-LABEL: @down
// CHECK: %[[LENGTH:.*]] = arith.subi %arg3, %arg2
// CHECK: arith.maxsi %[[LENGTH]], %c0
// CHECK: %[[TRIPS:.*]] = arith.ceildivsi
// CHECK: arith.index_cast %{{.*}} : index to i32
// CHECK: %[[END:.*]] = arith.subi %arg1, %{{.*}} : i32
// CHECK: scf.for %[[I:.*]] = %arg2 to %arg3 step %c8 {
// CHECK-NEXT: %[[PASSED:.*]] = arith.subi %[[I]], %arg2
// CHECK-NEXT: %[[PART:.*]] = arith.divsi %[[PASSED]], %c4
// CHECK-NEXT: %[[CAST:.*]] = arith.index_cast %[[PART]] : index to i32
// CHECK-NEXT: arith.subi %arg1, %[[CAST]] : i32
// CHECK: return %[[END]]
func.func @down(%y: !row, %first: i32, %low: index, %n: index, %x: tensor<64xf32>) -> i32 attributes {tile.kernel} {
  %c8 = arith.constant 8 : index
  %two = arith.constant 2 : i32
  %r = scf.for %i = %low to %n step %c8 iter_args(%k = %first) -> (i32) {
    %at = arith.index_cast %k : i32 to index
    "tile.store"(%x, %y, %at) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
    %next = arith.subi %k, %two : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// An inner loop's counter runs on in the outer one; a tile grows by a number.
// CHECK-LABEL: @nested
// CHECK: scf.for %[[G:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK-NEXT: arith.muli %[[G]], %c128
// CHECK: tensor.splat
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1 {
func.func @nested(%y: !row, %n: index, %x: tensor<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %tiles = arith.constant dense<64> : tensor<64xi32>
  %at = "tile.iota"() {axis = 0 : i32} : () -> tensor<64xi32>
  %all = arith.constant dense<true> : tensor<64xi1>
  %r:2 = scf.for %g = %c0 to %n step %c1 iter_args(%k = %c0, %t = %at) -> (index, tensor<64xi32>) {
    %in = scf.for %j = %c0 to %c2 step %c1 iter_args(%l = %k) -> (index) {
      "tile.store"(%x, %y, %l) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
      %next = arith.addi %l, %c64 : index
      scf.yield %next : index
    }
    %far = arith.sitofp %t : tensor<64xi32> to tensor<64xf32>
    "tile.store"(%far, %y, %in) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
    %after = arith.addi %t, %tiles : tensor<64xi32>
    scf.yield %in, %after : index, tensor<64xi32>
  }
  return
}

// What grows by another amount each time, or by no part of the step, stays carried.
// CHECK-LABEL: @stays
// CHECK: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (index, index)
func.func @stays(%y: !row, %n: index, %x: tensor<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c3 iter_args(%k = %c0, %l = %c0) -> (index, index) {
    "tile.store"(%x, %y, %k) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
    "tile.store"(%x, %y, %l) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
    %next = arith.addi %k, %i : index
    %other = arith.addi %l, %c2 : index
    scf.yield %next, %other : index, index
  }
  return
}
