// What stays carried: steps that differ between elements, what is read behind the loop, what is no
// sum of itself and a number.
// RUN: tilec opt %s --passes write-out-steps --target sm_80 | filecheck %s

!at = tensor<8xi32>
!x = memref<?xi32, strided<[1]>>

// CHECK-LABEL: @uneven
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg2, %{{.*}} = %{{.*}})
func.func @uneven(%x: !x, %n: index, %first: !at, %zero: !at, %all: tensor<8xi1>, %by: !at) -> !at attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %acc = %zero) -> (!at, !at) {
    %t = "tile.gather"(%x, %all, %zero, %at) {options = {}} : (!x, tensor<8xi1>, !at, !at) -> !at
    %sum = arith.xori %acc, %t : !at
    %next = arith.addi %at, %by : !at
    scf.yield %next, %sum : !at, !at
  }
  return %r#1 : !at
}

// CHECK-LABEL: @behind
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg2)
func.func @behind(%x: !x, %n: index, %first: !at) -> !at attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant dense<32> : !at
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first) -> (!at) {
    %next = arith.addi %at, %c32 : !at
    scf.yield %next : !at
  }
  return %r : !at
}

// CHECK-LABEL: @no_sum
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg2, %{{.*}} = %{{.*}})
func.func @no_sum(%x: !x, %n: index, %first: !at, %zero: !at, %all: tensor<8xi1>, %step: index) -> !at attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %acc = %zero) -> (!at, !at) {
    %t = "tile.gather"(%x, %all, %zero, %at) {options = {}} : (!x, tensor<8xi1>, !at, !at) -> !at
    %sum = arith.xori %acc, %t : !at
    scf.yield %t, %sum : !at, !at
  }
  return %r#1 : !at
}

// A step that each iteration has of its own.
// CHECK-LABEL: @by_counter
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg2, %{{.*}} = %{{.*}})
func.func @by_counter(%x: !x, %n: index, %first: !at, %zero: !at, %all: tensor<8xi1>) -> !at attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %acc = %zero) -> (!at, !at) {
    %t = "tile.gather"(%x, %all, %zero, %at) {options = {}} : (!x, tensor<8xi1>, !at, !at) -> !at
    %sum = arith.xori %acc, %t : !at
    %count = arith.index_cast %i : index to i32
    %by = tensor.splat %count : !at
    %next = arith.addi %at, %by : !at
    scf.yield %next, %sum : !at, !at
  }
  return %r#1 : !at
}
