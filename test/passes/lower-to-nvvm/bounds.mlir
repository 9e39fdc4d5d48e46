// A coordinate against a bound: one comparison for neighbours that must lie on the same side.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!x = memref<?xf32, strided<[1]>>
!i = tensor<256xi32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>
!b = tensor<256xi1, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>
!f = tensor<256xf32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>

// A bound that is a multiple of 4: two comparisons for eight elements.
// CHECK-LABEL: llvm.func @of_fours
func.func @of_fours(%x: !x, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %four = arith.constant 4 : i32
  %bound = arith.muli %n, %four : i32
  // CHECK-COUNT-2: arith.cmpi slt
  // CHECK-NOT: arith.cmpi slt
  %at = "tile.iota"() {axis = 0 : i32} : () -> !i
  %splat = tensor.splat %bound : !i
  %is = arith.cmpi slt, %at, %splat : !i
  %zero = arith.constant dense<0.0> : !f
  %one = arith.constant dense<1.0> : !f
  %y = arith.select %is, %one, %zero : !b, !f
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!f, !x, index) -> ()
  return
}

// The bound on the left, and a start that is a multiple of 2 only.
// CHECK-LABEL: llvm.func @of_twos
func.func @of_twos(%x: !x, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2 : i32
  %eight = arith.constant 8 : i32
  %bound = arith.muli %n, %eight : i32
  %start = arith.muli %n, %two : i32
  // CHECK-COUNT-4: arith.cmpi ugt
  // CHECK-NOT: arith.cmpi ugt
  %iota = "tile.iota"() {axis = 0 : i32} : () -> !i
  %starts = tensor.splat %start : !i
  %at = arith.addi %iota, %starts : !i
  %splat = tensor.splat %bound : !i
  %is = arith.cmpi ugt, %splat, %at : !i
  %zero = arith.constant dense<0.0> : !f
  %one = arith.constant dense<1.0> : !f
  %y = arith.select %is, %one, %zero : !b, !f
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!f, !x, index) -> ()
  return
}

// "At most n" has another side than "below n": nothing is known of n + 1.
// CHECK-LABEL: llvm.func @at_most
func.func @at_most(%x: !x, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %eight = arith.constant 8 : i32
  %bound = arith.muli %n, %eight : i32
  // CHECK-COUNT-8: arith.cmpi sle
  %at = "tile.iota"() {axis = 0 : i32} : () -> !i
  %splat = tensor.splat %bound : !i
  %is = arith.cmpi sle, %at, %splat : !i
  %zero = arith.constant dense<0.0> : !f
  %one = arith.constant dense<1.0> : !f
  %y = arith.select %is, %one, %zero : !b, !f
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!f, !x, index) -> ()
  return
}

// Many questions, of numbers that are 0 or more: constants against one distance.
// CHECK-LABEL: llvm.func @distances
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi slt, %[[LEFT]], %{{.*}}
// CHECK: arith.cmpi slt, %[[LEFT]], %{{.*}}
func.func @distances(%b: memref<?xi8, strided<[1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %b, %c0 : memref<?xi8, strided<[1]>>
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %first = tensor.splat %p : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %at = arith.addi %i, %first : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %end = tensor.splat %n : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %inside = arith.cmpi ult, %at, %end : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %t = arith.extui %inside : tensor<256xi1, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">> to tensor<256xi8, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  "tile.store"(%t, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<256xi8, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>, memref<?xi8, strided<[1]>>, index) -> ()
  return
}

// A number that may be negative: its distance might not fit.
// CHECK-LABEL: llvm.func @any_number
// CHECK: arith.cmpi ult
func.func @any_number(%b: memref<?xi8, strided<[1]>>, %p: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %b, %c0 : memref<?xi8, strided<[1]>>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %first = tensor.splat %p : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %at = arith.addi %i, %first : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %end = tensor.splat %n : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %inside = arith.cmpi ult, %at, %end : tensor<256xindex, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  %t = arith.extui %inside : tensor<256xi1, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">> to tensor<256xi8, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
  "tile.store"(%t, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<256xi8, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>, memref<?xi8, strided<[1]>>, index) -> ()
  return
}
