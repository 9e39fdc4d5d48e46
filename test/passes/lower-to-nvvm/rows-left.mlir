// Many rows of a tile against the end of an array: one remainder, not the number of each row, which a
// loop would keep in registers.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file | filecheck %s

!m = memref<?x?xi8, strided<[?, 1]>>
!x = tensor<8x32xi8, #gpu_tile.layout<"T(32):(1@1) V(8):(1@0)">>

// Where the tile starts is a multiple of a program's number: 0 or more.
// CHECK-LABEL: llvm.func @from_a_program(
// CHECK-SAME: %[[ROWS:[^:,]*]]: i64
func.func @from_a_program(%a: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %p, %c8 : index
  // CHECK: %[[LEFT:[^ ]*]] = arith.subi %[[ROWS]], %
  // CHECK-COUNT-8: arith.cmpi sgt, %[[LEFT]], %
  // CHECK-NOT: arith.cmpi
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  return
}

// -----
!m = memref<?x?xi8, strided<[?, 1]>>
!x = tensor<8x32xi8, #gpu_tile.layout<"T(32):(1@1) V(8):(1@0)">>

// Of an argument nothing is known: rows in front of the array are huge unsigned numbers.
// CHECK-LABEL: llvm.func @from_an_argument(
// CHECK-NOT: arith.subi
// CHECK-COUNT-8: arith.cmpi ult
// CHECK-NOT: arith.cmpi sgt
func.func @from_an_argument(%a: !m, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  return
}
