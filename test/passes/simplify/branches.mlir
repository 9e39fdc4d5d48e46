// A loop that runs once or not at all is a branch.
// RUN: tilec opt %s --passes simplify | filecheck %s

!row = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @stores
// CHECK-NOT: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: "tile.store"(%{{.*}}, %{{.*}}, %c0)
// CHECK-NEXT: }
func.func @stores(%y: !row, %n: i32, %x: tensor<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %some = arith.cmpi sgt, %n, %zero : i32
  %times = arith.select %some, %one, %zero : i32
  %end = arith.index_cast %times : i32 to index
  scf.for %i = %c0 to %end step %c1 {
    "tile.store"(%x, %y, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
  }
  return
}

// What it carries is as before where it does not run.
// CHECK-LABEL: @carries
// CHECK: %[[R:.*]]:2 = scf.if %{{.*}} -> (tensor<64xf32>, f32) {
// CHECK: scf.yield %{{.*}}, %arg2 : tensor<64xf32>, f32
// CHECK: } else {
// CHECK: scf.yield %arg1, %{{.*}} : tensor<64xf32>, f32
// CHECK: "tile.store"(%[[R]]#0
func.func @carries(%y: !row, %x: tensor<64xf32>, %z: f32, %some: i1) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = arith.constant 2.0 : f32
  %times = arith.extui %some : i1 to i32
  %end = arith.index_cast %times : i32 to index
  %r:2 = scf.for %i = %c0 to %end step %c1 iter_args(%a = %x, %b = %first) -> (tensor<64xf32>, f32) {
    %t = "tile.load"(%y, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!row, index) -> tensor<64xf32>
    %sum = arith.addf %a, %t : tensor<64xf32>
    scf.yield %sum, %z : tensor<64xf32>, f32
  }
  "tile.store"(%r#0, %y, %c0) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
  return %r#1 : f32
}

// One from elsewhere than 0, one that counts as -1, one of which something is demanded, one of a
// product: loops.
// CHECK-LABEL: @loops
// CHECK-NOT: scf.if
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.if
func.func @loops(%y: !row, %n: index, %x: tensor<64xf32>, %some: i1, %a: tensor<16x16xf16>, %acc: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %times = arith.extui %some : i1 to i32
  %end = arith.index_cast %times : i32 to index
  %less = arith.index_cast %some : i1 to index
  scf.for %i = %n to %end step %c1 {
    "tile.store"(%x, %y, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
  }
  scf.for %i = %c0 to %less step %c1 {
    "tile.store"(%x, %y, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
  }
  scf.for %i = %c0 to %end step %c1 {
    "tile.store"(%x, %y, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !row, index) -> ()
  } {tile.stages = 2 : i32}
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%old = %acc) -> (tensor<16x16xf32>) {
    %p = "tile.dot"(%a, %a, %old) {options = {}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.yield %p : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}
