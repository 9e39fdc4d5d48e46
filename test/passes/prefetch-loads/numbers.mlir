// Numbers of rows that a loop gathers come an iteration ahead, whether or not its warps meet; the rows
// come in their own.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 2 | filecheck %s

#rows = #gpu_tile.layout<"T(16,4):(0,1@0) V():()">
#tile = #gpu_tile.layout<"T(16,4):(8@1,1@0) V(8):(1@1)">
!n = tensor<4xi32, #rows>
!i = tensor<4x128xi32, #tile>
!t = tensor<4x128xf16, #tile>

// CHECK-LABEL: func.func @tokens(
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: "tile.load"(%arg1
// CHECK: scf.for %[[K:.*]] = %c0 to %[[N:.*]] step %c4 iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %[[FIRST]])
// CHECK: %[[AT:.*]] = arith.select
// CHECK: %[[NEXT:.*]] = "tile.load"(%arg1, %[[AT]])
// CHECK: "tile.broadcast"(%[[NOW]])
// CHECK: "tile.gather"(%arg0
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
func.func @tokens(%x: memref<?xf16, strided<[1]>>, %table: memref<?xi32, strided<[1]>>, %y: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : !t
  %ok = arith.constant dense<true> : tensor<4x128xi1, #tile>
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %size = memref.dim %table, %c0 : memref<?xi32, strided<[1]>>
  %r = scf.for %k = %c0 to %size step %c4 iter_args(%h = %zero) -> (!t) {
    %number = "tile.load"(%table, %k) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> !n
    %rows = "tile.broadcast"(%number) {dims = array<i32: 0>} : (!n) -> !i
    %at = arith.addi %rows, %along : !i
    %v = "tile.gather"(%x, %ok, %zero, %at) {options = {run = array<i32: 1, 8>}} : (memref<?xf16, strided<[1]>>, tensor<4x128xi1, #tile>, !t, !i) -> !t
    %next = arith.addf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, memref<?x?xf16, strided<[?, 1]>>, index, index) -> ()
  return
}

// So they do where a tile holds most rows, but memory says how long one is: some may be long.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: "tile.load"(%arg1
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[NOW:.*]] = %[[FIRST]])
// CHECK: "tile.load"(%arg1
func.func @rows(%x: memref<?xf16, strided<[1]>>, %table: memref<?xi32, strided<[1]>>, %y: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel, tile.holds_rows} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : !t
  %ok = arith.constant dense<true> : tensor<4x128xi1, #tile>
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %end = "tile.load"(%table, %c0) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(64):(0) V():()">>
  %end32 = tensor.extract %end[] : tensor<i32, #gpu_tile.layout<"T(64):(0) V():()">>
  %size = arith.index_cast %end32 : i32 to index
  %r = scf.for %k = %c0 to %size step %c4 iter_args(%h = %zero) -> (!t) {
    %number = "tile.load"(%table, %k) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> !n
    %rows = "tile.broadcast"(%number) {dims = array<i32: 0>} : (!n) -> !i
    %at = arith.addi %rows, %along : !i
    %v = "tile.gather"(%x, %ok, %zero, %at) {options = {run = array<i32: 1, 8>}} : (memref<?xf16, strided<[1]>>, tensor<4x128xi1, #tile>, !t, !i) -> !t
    %next = arith.addf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, memref<?x?xf16, strided<[?, 1]>>, index, index) -> ()
  return
}
