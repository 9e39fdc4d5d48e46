// A loop of products: its loads run one iteration ahead, in their place.
// RUN: tilec opt %s --passes prefetch-loads --target sm_80 --num-warps 1 | filecheck %s

!x = memref<?x8xf32, strided<[8, 1]>>
!lhs = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!rhs = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!acc = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// CHECK-LABEL: func.func @products(
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK-NEXT: "tile.load"(%arg2, %c0, %c0)
// CHECK: scf.for %[[I:.*]] = %c0 to %[[N:.*]] step %c16 iter_args(%[[SUM:.*]] = %{{.*}}, %[[V:.*]] = %[[FIRST]])
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %c16
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[LATER]], %[[N]]
// CHECK: %[[AT:.*]] = arith.select %[[MORE]], %[[LATER]], %[[I]]
// CHECK: %[[D:.*]] = "gpu_tile.mma"(%arg0, %arg1, %[[SUM]])
// CHECK-NEXT: %[[NEXT:.*]] = "tile.load"(%arg2, %[[AT]], %c0)
// CHECK-NEXT: %[[ADDED:.*]] = arith.addf %[[D]], %[[V]]
// CHECK-NEXT: scf.yield %[[ADDED]], %[[NEXT]]
func.func @products(%a: !lhs, %b: !rhs, %x: !x) -> !acc attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !acc
  %n = memref.dim %x, %c0 : !x
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (!acc) {
    %d = "gpu_tile.mma"(%a, %b, %sum) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!lhs, !rhs, !acc) -> !acc
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !acc
    %added = arith.addf %d, %v : !acc
    scf.yield %added : !acc
  }
  return %r : !acc
}
