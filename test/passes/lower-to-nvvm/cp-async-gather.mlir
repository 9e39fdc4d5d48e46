// A copy of gathered rows: an address and a predicate a vector, of its first element's numbers.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(4,8):(8@1,1@0) V(8,2):(1@1,8@0)">
!i = tensor<16x32xi32, #ld>
!ok = tensor<16x32xi1, #ld>
!b = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"S<2,4,3> o (16,32):(32,1)">>

// Each thread has two vectors; what lies outside or is masked is not read, and becomes zeros.
// CHECK-LABEL: llvm.func @two_vectors(
func.func @two_vectors(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %row: index, %some: i1) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %r32 = arith.index_cast %row : index to i32
  %first = tensor.splat %r32 : !i
  %down = "tile.iota"() {axis = 0 : i32} : () -> !i
  %rows = arith.addi %first, %down : !i
  %columns = "tile.iota"() {axis = 1 : i32} : () -> !i
  %ok = tensor.splat %some : !ok
  %true = arith.constant true
  // CHECK: %[[ROW:[^ ]*]] = arith.cmpi ult
  // CHECK: %[[BOTH:[^ ]*]] = arith.andi %{{.*}}, %[[ROW]]
  // CHECK: %[[COLUMN:[^ ]*]] = arith.cmpi ult
  // CHECK: %[[INSIDE:[^ ]*]] = arith.andi %[[BOTH]], %[[COLUMN]]
  // CHECK: %[[FROM:[^ ]*]] = llvm.getelementptr
  // CHECK: %[[READ:[^ ]*]] = arith.andi %{{.*}}, %[[INSIDE]]
  // CHECK: %[[OUTSIDE:[^ ]*]] = arith.xori %[[READ]], %true
  // CHECK: "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,b,~{memory}" %{{[^,]*}}, %[[FROM]], %[[OUTSIDE]]
  // CHECK: "cp.async.cg.shared.global [$0], [$1], 16, $2;"
  // CHECK-NOT: cp.async
  "gpu_tile.cp_async_gather"(%a, %s, %true, %ok, %rows, %columns) {bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, !ok, !i, !i) -> ()
  // CHECK: llvm.return
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(4,4):(8@1,1@0) V(8):(1@1)">
!i = tensor<4x32xi32, #ld>
!ok = tensor<4x32xi1, #ld>
!b = !gpu_tile.buffer<tensor<4x32xf16>, #gpu_tile.shared<"S<2,4,3> o (4,32):(32,1)">>

// Threads that hold copies of others' elements write nothing, zeros above all.
// CHECK-LABEL: llvm.func @half_a_warp(
func.func @half_a_warp(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %some: i1) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %rows = "tile.iota"() {axis = 0 : i32} : () -> !i
  %columns = "tile.iota"() {axis = 1 : i32} : () -> !i
  %ok = arith.constant dense<true> : !ok
  // CHECK: %[[MINE:[^ ]*]] = arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK: "@$3 cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,b,b,~{memory}" %{{.*}}, %[[MINE]]
  // CHECK-NOT: cp.async
  "gpu_tile.cp_async_gather"(%a, %s, %some, %ok, %rows, %columns) {bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, !ok, !i, !i) -> ()
  // CHECK: llvm.return
  return
}
