// Both operands in rows: the rhs lies across k, so the loop adds up the transposed product, and the
// sum is turned back behind it. A start of zeros stays a constant.
// RUN: tilec opt %s --passes transpose-products --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<128x32xf32>
!b = tensor<32x64xf32>
!c = tensor<128x64xf32>

// CHECK-LABEL: @rows
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[ZERO]]) -> (tensor<64x128xf32>)
// CHECK: %[[A:.*]] = "tile.load"(%arg0
// CHECK: %[[B:.*]] = "tile.load"(%arg1
// CHECK: %[[L:.*]] = "tile.transpose"(%[[B]]) {permutation = array<i32: 1, 0>}
// CHECK: %[[R:.*]] = "tile.transpose"(%[[A]]) {permutation = array<i32: 1, 0>}
// CHECK: %[[D:.*]] = "tile.dot"(%[[L]], %[[R]], %[[SUM]]) {options = {precision = "tf32"}}
// CHECK-NOT: "tile.dot"
// CHECK: scf.yield %[[D]]
// CHECK: tile.stages = 3
// CHECK: %[[BACK:.*]] = "tile.transpose"(%[[LAST]])
// CHECK: "tile.store"(%[[BACK]]
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 3 : i32}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Beside another value that the loop carries; a start that is no constant is turned.
// CHECK-LABEL: @carried
// CHECK: %[[INIT:.*]] = "tile.load"(%arg2
// CHECK: %[[START:.*]] = "tile.transpose"(%[[INIT]])
// CHECK: %[[LAST:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %c0, %{{.*}} = %[[START]]) -> (index, tensor<64x128xf32>)
// CHECK: "tile.transpose"(%[[LAST]]#1)
// CHECK: "tile.store"({{.*}}%[[LAST]]#0
func.func @carried(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                   %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %init = "tile.load"(%c, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !c
  %size = memref.dim %b, %c0 : !m
  %acc:2 = scf.for %k = %c0 to %size step %bk iter_args(%sum = %init, %at = %c0) -> (!c, index) {
    %ta = "tile.load"(%a, %c0, %at) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %at, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    %then = arith.addi %at, %bk : index
    scf.yield %next, %then : !c, index
  }
  "tile.store"(%acc#0, %c, %acc#1, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}
