// Stores of columns, as an unrolled loop has them: the same thread writes an element in each, unless
// their rows begin elsewhere, other threads hold them, a load is among them, or rows are wrapped.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

!a = memref<?x?xf32, strided<[?, 1]>>
!v = tensor<16xf32, #gpu_tile.layout<"T(16,8):(0,1@0) V(2):(8@0)">>
!w = tensor<16xf32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>

// Also from one iteration to the next.
// CHECK-LABEL: @columns
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @columns(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %k = %one to %other step %c2 {
    %next = arith.addi %k, %c1 : index
    "tile.store"(%t, %a, %row, %k) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
    "tile.store"(%t, %a, %row, %next) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  }
  return
}

// Tiles beside each other, from one iteration to the next, too: no element is in two.
// CHECK-LABEL: @beside
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @beside(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  scf.for %k = %one to %other step %c32 {
    %next = arith.addi %k, %c16 : index
    "tile.store"(%t, %a, %row, %k) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
    "tile.store"(%t, %a, %row, %next) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
  }
  return
}

// They overlap: in an iteration, or with the next one.
// CHECK-LABEL: @overlapping
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
// CHECK: scf.for
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
// CHECK-NEXT: "tile.store"
func.func @overlapping(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %c31 = arith.constant 31 : index
  %near = arith.addi %one, %c15 : index
  "tile.store"(%t, %a, %row, %one) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
  "tile.store"(%t, %a, %row, %near) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
  scf.for %k = %one to %other step %c31 {
    %next = arith.addi %k, %c16 : index
    "tile.store"(%t, %a, %row, %k) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
    "tile.store"(%t, %a, %row, %next) {dims = array<i32: 1>, options = {}} : (!v, !a, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @other_rows
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
func.func @other_rows(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  "tile.store"(%t, %a, %row, %one) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  "tile.store"(%t, %a, %one, %other) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  return
}

// The same threads in one iteration, others in the next.
// CHECK-LABEL: @rows_that_move
// CHECK: scf.for
// CHECK: "gpu_tile.sync"
// CHECK: return
func.func @rows_that_move(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %k = %one to %other step %c1 {
    "tile.store"(%t, %a, %k, %one) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
    "tile.store"(%t, %a, %k, %other) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @other_threads
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
func.func @other_threads(%a: !a, %t: !v, %u: !w, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  "tile.store"(%t, %a, %row, %one) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  "tile.store"(%u, %a, %row, %other) {dims = array<i32: 0>, options = {}} : (!w, !a, index, index) -> ()
  return
}

// Copies of an element are loaded by threads that did not write it.
// CHECK-LABEL: @loaded
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.load"
func.func @loaded(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  "tile.store"(%t, %a, %row, %one) {dims = array<i32: 0>, options = {}} : (!v, !a, index, index) -> ()
  %x = "tile.load"(%a, %row, %other) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index, index) -> !v
  return
}

// CHECK-LABEL: @wrapped
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
func.func @wrapped(%a: !a, %t: !v, %row: index, %one: index, %other: index) attributes {tile.kernel} {
  "tile.store"(%t, %a, %one, %row) {dims = array<i32: 1>, options = {wrapped = true}} : (!v, !a, index, index) -> ()
  "tile.store"(%t, %a, %other, %row) {dims = array<i32: 1>, options = {wrapped = true}} : (!v, !a, index, index) -> ()
  return
}
