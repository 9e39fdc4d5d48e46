// What is never negative is divided without signs, in tiles too, and is not below 0.
// RUN: tilec opt %s --passes reduce-divisions --target sm_90a | filecheck %s

!x = memref<?xf32, strided<[1]>>
!t = tensor<64xindex, #gpu_tile.layout<"T(128):(1@0) V():()">>
!b = tensor<64xi1, #gpu_tile.layout<"T(128):(1@0) V():()">>
!i = tensor<64xi32, #gpu_tile.layout<"T(128):(1@0) V():()">>

// CHECK-LABEL: func.func @unsigned(
// CHECK: arith.divui {{.*}} : index
// CHECK: arith.ceildivui {{.*}} : index
// CHECK: arith.divui {{.*}} : tensor
// CHECK: arith.remui {{.*}} : tensor
// CHECK-NOT: arith.cmpi slt
// CHECK: %[[NO:.*]] = arith.constant dense<false>
// CHECK: arith.select %[[NO]]
func.func @unsigned(%x: !x, %n: index) -> !t attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %size = memref.dim %x, %c0 : !x
  %q = arith.floordivsi %p, %size : index
  %blocks = arith.ceildivsi %size, %c64 : index
  %at = arith.muli %p, %blocks : index
  %start = arith.addi %at, %q : index
  %numbers = "tile.iota"() {axis = 0 : i32} : () -> !i
  %wide = arith.index_cast %numbers : !i to !t
  %first = tensor.splat %start : !t
  %all = arith.addi %first, %wide : !t
  %sizes = tensor.splat %size : !t
  %quotients = arith.divsi %all, %sizes : !t
  %rest = arith.remsi %quotients, %sizes : !t
  %zeros = arith.constant dense<0> : !t
  %low = arith.cmpi slt, %rest, %zeros : !t
  %up = arith.addi %rest, %sizes : !t
  %r = arith.select %low, %up, %rest : !b, !t
  return %r : !t
}
