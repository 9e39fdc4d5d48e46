// While loops around products whose end is known become for loops.
// RUN: tilec opt %s --passes count-loops --target sm_90a | filecheck %s

// What a comparison with a value from outside ends: the loop's variable takes the counter's place.
// CHECK-LABEL: func.func @compares
// CHECK: %[[HIGH:.*]] = memref.dim
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[HIGH]] step %{{.*}} iter_args(%[[ACC:.*]] = %cst) -> (tensor<64x64xf32>) {
// CHECK: %[[AT:.*]] = arith.index_cast %[[K]] : index to i32
// CHECK: %[[COLUMN:.*]] = arith.index_cast %[[AT]] : i32 to index
// CHECK: "tile.load"(%arg0, %{{.*}}, %[[COLUMN]])
// CHECK: scf.yield %{{.*}} : tensor<64x64xf32>
// CHECK-NOT: scf.while
func.func @compares(%a: memref<?x?xbf16, strided<[?, 1]>>, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32   %c64 = arith.constant 64 : i32
  %i0 = arith.constant 0 : index   %i1 = arith.constant 1 : index
  %high = memref.dim %a, %i1 : memref<?x?xbf16, strided<[?, 1]>>
  %r:2 = scf.while (%acc = %zero, %k = %c0) : (tensor<64x64xf32>, i32) -> (tensor<64x64xf32>, i32) {
    %at = arith.index_cast %k : i32 to index
    %in = arith.cmpi slt, %at, %high : index
    scf.condition(%in) %acc, %k : tensor<64x64xf32>, i32
  } do {
  ^bb0(%acc: tensor<64x64xf32>, %k: i32):
    %at = arith.index_cast %k : i32 to index
    %x = "tile.load"(%a, %i0, %at) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : bf16} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<64x64xbf16>
    %d = "tile.dot"(%x, %x, %acc) {options = {}} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %next = arith.addi %k, %c64 : i32
    scf.yield %d, %next : tensor<64x64xf32>, i32
  }
  "tile.store"(%r#0, %c, %i0, %i0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// A break in front of the product, where memory says so: its condition is asked ahead, and the
// iteration that only leaves is none. What is read behind the loop, the loop carries.
// CHECK-LABEL: func.func @breaks
// CHECK: %[[FOUND:.*]]:3 = scf.while (%[[K:.*]] = %{{.*}}, %{{.*}} = %false, %[[N:.*]] = %{{.*}}) : (index, i1, index)
// CHECK: "tile.load"(%arg1, %[[K]])
// CHECK: %[[GOES:.*]] = arith.andi
// CHECK: %[[SECOND:.*]] = arith.addi %[[K]], %c64
// CHECK: %[[ONE:.*]] = arith.select %[[GOES]], %{{.*}}, %[[N]] : index
// The conditions of four iterations at once.
// CHECK: "tile.load"(%arg1, %[[SECOND]])
// CHECK: %[[BOTH:.*]] = arith.andi %[[GOES]]
// CHECK: arith.select %[[BOTH]], %{{.*}}, %[[ONE]] : index
// CHECK: "tile.load"
// CHECK: "tile.load"
// CHECK: scf.condition
// CHECK-NOT: tile.load
// CHECK-NOT: tile.dot
// CHECK: %[[LENGTH:.*]] = arith.muli %[[FOUND]]#2, %c64
// CHECK: %[[PAST:.*]] = arith.addi %{{.*}}, %[[LENGTH]]
// CHECK: %[[END:.*]] = arith.minsi %[[PAST]], %dim
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]] step %c64
// CHECK-NOT: scf.if
// CHECK: "tile.dot"
// CHECK: return
func.func @breaks(%a: memref<?x?xbf16, strided<[?, 1]>>, %t: memref<?xi32, strided<[1]>>, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %cst = arith.constant dense<0.0> : tensor<64x64xf32>
  %false = arith.constant false   %true = arith.constant true   %n0 = arith.constant 0 : i32
  %c0 = arith.constant 0 : index   %c1 = arith.constant 1 : index   %c64 = arith.constant 64 : index
  %dim = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, 1]>>
  %r:2 = scf.while (%k = %c0, %left = %false, %acc = %cst) : (index, i1, tensor<64x64xf32>) -> (index, tensor<64x64xf32>) {
    %in = arith.cmpi slt, %k, %dim : index
    %on = arith.xori %left, %true : i1
    %go = arith.andi %in, %on : i1
    scf.condition(%go) %k, %acc : index, tensor<64x64xf32>
  } do {
  ^bb0(%k: index, %acc: tensor<64x64xf32>):
    %one = "tile.load"(%t, %k) {dims = array<i32>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32>
    %flag = tensor.extract %one[] : tensor<i32>
    %leaves = arith.cmpi eq, %flag, %n0 : i32
    %sum = scf.if %leaves -> (tensor<64x64xf32>) {
      scf.yield %acc : tensor<64x64xf32>
    } else {
      %x = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : bf16} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<64x64xbf16>
      %d = "tile.dot"(%x, %x, %acc) {options = {}} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %next = arith.addi %k, %c64 : index
    scf.yield %next, %leaves, %sum : index, i1, tensor<64x64xf32>
  }
  "tile.store"(%r#1, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
