// An inner loop that goes round once, in this launch, is none.
// RUN: tilec opt %s --passes open-loops --target sm_80 | filecheck %s

!a = memref<?x?x?xf16, strided<[?, ?, 1]>>
!m = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @images
func.func @images(%x: !a, %y: !m, %images: index, %places: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %zeros = arith.constant dense<0.0> : tensor<1024xf16>
  %c = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[SOME:.*]] = arith.cmpi slt, %c0, %arg3 : index
  // CHECK: %[[ONCE:.*]] = arith.andi %[[SOME]], %{{.*}} : i1
  // CHECK: %[[SUM:.*]] = scf.if %[[ONCE]] -> (tensor<1024xf16>) {
  // CHECK-NEXT: %[[ALL:.*]] = scf.for %[[IMAGE:[a-z0-9]+]] = %c0 to %arg2 step %c1 iter_args(%[[A:.*]] = %cst)
  // CHECK-NEXT: %[[TWO:.*]] = arith.addi %[[IMAGE]], %[[IMAGE]]
  // CHECK-NEXT: %[[T:.*]] = "tile.load"(%arg0, %[[TWO]], %{{.*}}, %c0)
  // CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[T]]
  // CHECK-NEXT: scf.yield %[[B]]
  // CHECK: scf.yield %[[ALL]]
  // CHECK: } else {
  // CHECK: scf.for
  // CHECK: scf.for
  %sum = scf.for %image = %c0 to %images step %c1 iter_args(%a = %zeros) -> (tensor<1024xf16>) {
    %two = arith.addi %image, %image : index
    %more = scf.for %p = %c0 to %places step %c1024 iter_args(%b = %a) -> (tensor<1024xf16>) {
      %t = "tile.load"(%x, %two, %c, %p) {dims = array<i32: 2>, padding = 0.0 : f16, options = {}} : (!a, index, index, index) -> tensor<1024xf16>
      %next = arith.addf %b, %t : tensor<1024xf16>
      scf.yield %next : tensor<1024xf16>
    }
    scf.yield %more : tensor<1024xf16>
  }
  // CHECK: "tile.store"(%[[SUM]]
  "tile.store"(%sum, %y, %c, %c0) {dims = array<i32: 1>, options = {}} : (tensor<1024xf16>, !m, index, index) -> ()
  return
}

// What stands behind the inner loop has what its one iteration leaves.
// CHECK-LABEL: @rows
func.func @rows(%x: !m, %y: !m, %rows: index, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64xf16>
  // CHECK: scf.if
  // CHECK-NEXT: scf.for %[[ROW:[a-z0-9]+]] = %c0 to %arg2
  // CHECK-NEXT: %[[T:.*]] = "tile.load"(%arg0, %[[ROW]], %c0)
  // CHECK-NEXT: %[[S:.*]] = arith.addf %cst, %[[T]]
  // CHECK-NEXT: "tile.store"(%[[S]], %arg1, %[[ROW]], %c0)
  // CHECK: } else {
  scf.for %row = %c0 to %rows step %c1 {
    %more = scf.for %p = %c0 to %n step %c64 iter_args(%b = %zeros) -> (tensor<64xf16>) {
      %t = "tile.load"(%x, %row, %p) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64xf16>
      %next = arith.addf %b, %t : tensor<64xf16>
      scf.yield %next : tensor<64xf16>
    }
    "tile.store"(%more, %y, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf16>, !m, index, index) -> ()
  }
  return
}
