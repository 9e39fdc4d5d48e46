// Indices that a loop moves on are where they began, plus trips times the step.
// RUN: tilec opt %s --passes write-out-steps --target sm_80 | filecheck %s

!at = tensor<8xi32>
!x = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @by_constant
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<8xf32>)
// CHECK: %[[STEP:.*]] = arith.constant 32 : i32
// CHECK: %[[TRIP:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK: %[[GONE:.*]] = arith.muli %[[TRIP]], %[[STEP]] : i32
// CHECK: %[[BY:.*]] = tensor.splat %[[GONE]]
// CHECK: %[[NOW:.*]] = arith.addi %arg2, %[[BY]]
// CHECK: "tile.gather"({{.*}}, %[[NOW]])
func.func @by_constant(%x: !x, %n: index, %first: !at, %zero: tensor<8xf32>, %all: tensor<8xi1>) -> tensor<8xf32> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant dense<32> : !at
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %acc = %zero) -> (!at, tensor<8xf32>) {
    %t = "tile.gather"(%x, %all, %zero, %at) {options = {}} : (!x, tensor<8xi1>, tensor<8xf32>, !at) -> tensor<8xf32>
    %sum = arith.addf %acc, %t : tensor<8xf32>
    %next = arith.addi %at, %c32 : !at
    scf.yield %next, %sum : !at, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// A loop from elsewhere, by several, and a step that is a number of the launch.
// CHECK-LABEL: @by_argument
// CHECK: scf.for %[[I:.*]] = %[[LOW:.*]] to
// CHECK: %[[FROM:.*]] = arith.subi %[[I]], %[[LOW]]
// CHECK: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[TRIPS:.*]] = arith.divui %[[FROM]], %[[FOUR]]
// CHECK: %[[TRIP:.*]] = arith.index_cast %[[TRIPS]] : index to i32
// CHECK: arith.muli %[[TRIP]], %arg5
func.func @by_argument(%x: !x, %n: index, %first: !at, %zero: tensor<8xf32>, %all: tensor<8xi1>, %step: i32) -> tensor<8xf32> attributes {tile.kernel} {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %by = tensor.splat %step : !at
  %r:2 = scf.for %i = %c3 to %n step %c4 iter_args(%at = %first, %acc = %zero) -> (!at, tensor<8xf32>) {
    %t = "tile.gather"(%x, %all, %zero, %at) {options = {}} : (!x, tensor<8xi1>, tensor<8xf32>, !at) -> tensor<8xf32>
    %sum = arith.addf %acc, %t : tensor<8xf32>
    %next = arith.addi %by, %at : !at
    scf.yield %next, %sum : !at, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}
