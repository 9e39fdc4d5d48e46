// Along an unbounded dimension no index is compared with a size: of a gather, and of a dimension
// that a tile has one index along.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!b = tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// CHECK-LABEL: llvm.func @gathered(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %[[ROWS:[a-z0-9]+]]: i64, %[[COLUMNS:[a-z0-9]+]]: i64, %{{.*}}: i64
// CHECK-NOT: arith.cmpi ult, %{{.*}}, %[[ROWS]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[COLUMNS]] : i64
func.func @gathered(%x: !m {tile.unbounded = array<i32: 0>}) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !b
  %zero = arith.constant dense<0.0> : !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  %v = "tile.gather"(%x, %ok, %zero, %i, %i) {options = {}} : (!m, !b, !t, !i, !i) -> !t
  "tile.scatter"(%v, %x, %ok, %i, %i) {options = {}} : (!t, !m, !b, !i, !i) -> ()
  return
}

// CHECK-LABEL: llvm.func @loaded(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %[[ROWS:[a-z0-9]+]]: i64, %[[COLUMNS:[a-z0-9]+]]: i64, %{{.*}}: i64
// CHECK-NOT: arith.cmpi ult, %{{.*}}, %[[ROWS]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[COLUMNS]] : i64
func.func @loaded(%x: !m {tile.unbounded = array<i32: 0>}, %row: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  "tile.store"(%v, %x, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}
