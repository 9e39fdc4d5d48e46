// Neighbours in a row: the aligned vectors around them, each loaded once.
// RUN: tilec opt %s --passes align-loads --target sm_80 | filecheck %s

!a = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<4x64xf16, #gpu_tile.layout<"T(8,4):(8@1,1@0) V(8):(1@1)">>

// CHECK-LABEL: @three
// CHECK: %[[N:.*]] = arith.muli
// CHECK: %[[BACK:.*]] = arith.addi %[[N]], %{{.*}} : index
// CHECK-NEXT: %[[LOW:.*]] = "tile.load"(%{{.*}}, %{{.*}}, %[[BACK]])
// CHECK-NEXT: %[[SAME:.*]] = "tile.load"(%{{.*}}, %{{.*}}, %[[N]])
// CHECK-NEXT: %[[X:.*]] = "gpu_tile.shift_vectors"(%[[LOW]], %[[SAME]]) {axis = 1 : i32, first = 7 : i32, width = 8 : i32}
// CHECK: %[[HIGH:.*]] = "tile.load"
// CHECK-NEXT: %[[Z:.*]] = "gpu_tile.shift_vectors"(%[[SAME]], %[[HIGH]]) {axis = 1 : i32, first = 2 : i32, width = 8 : i32}
// CHECK-NOT: tile.load
// CHECK: arith.addf %[[X]], %[[SAME]]
// CHECK-NEXT: arith.addf %{{.*}}, %[[Z]]
func.func @three(%a: !a {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !a) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %m = "tile.program_id"() {axis = 0 : i32} : () -> index
  %p = "tile.program_id"() {axis = 1 : i32} : () -> index
  %n = arith.muli %p, %c64 : index
  %left = arith.subi %n, %c1 : index
  %right = arith.addi %c2, %n : index
  %x = "tile.load"(%a, %m, %left) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %m, %n) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %z = "tile.load"(%a, %m, %right) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  %r = arith.addf %s, %z : !t
  "tile.store"(%r, %b, %m, %n) {dims = array<i32: 0, 1>, options = {}} : (!t, !a, index, index) -> ()
  return
}
