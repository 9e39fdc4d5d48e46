// One branch for all programs inside of the arrays; offsets that differ by constants are tested once.
// RUN: tilec opt %s --passes split-edges --target sm_80 --num-warps 1 | filecheck %s

!a = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<4x64xf16, #gpu_tile.layout<"T(32):(1@1) V(2,4):(32@1,1@0)">>

// CHECK-LABEL: @three
// CHECK: %[[N:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[ROWS:.*]] = memref.dim %[[A:.*]], %c0
// CHECK: %[[DOWN:.*]] = arith.cmpi sle, %{{.*}}, %[[ROWS]]
// CHECK: %[[FIRST:.*]] = arith.addi %[[N]], %{{.*}}
// CHECK: %[[LEFT:.*]] = arith.cmpi sge, %[[FIRST]]
// CHECK: %[[COLUMNS:.*]] = memref.dim %[[A]], %c1
// CHECK: %[[RIGHT:.*]] = arith.cmpi sle, %{{.*}}, %[[COLUMNS]]
// CHECK-NOT: arith.cmpi
// CHECK: scf.if
// CHECK-COUNT-4: "tile.load"({{.*}}options = {inside = true}
// CHECK: "tile.store"({{.*}}options = {inside = true}
// CHECK: } else {
// CHECK-COUNT-4: "tile.load"({{.*}}options = {}
// CHECK: "tile.store"({{.*}}options = {}
// CHECK-NOT: scf.if
func.func @three(%a: !a, %b: !a {tile.unbounded = array<i32: 0, 1>}) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %q = "tile.program_id"() {axis = 1 : i32} : () -> index
  %m = arith.muli %p, %c4 : index
  %n = arith.muli %q, %c64 : index
  %x = "tile.load"(%a, %m, %n) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %left = arith.subi %n, %c1 : index
  %y = "tile.load"(%a, %m, %left) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %right = arith.addi %n, %c1 : index
  %z = "tile.load"(%a, %m, %right) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %down = arith.addi %m, %c1 : index
  %w = "tile.load"(%a, %down, %n) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f16} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  %t = arith.addf %z, %w : !t
  %r = arith.addf %s, %t : !t
  "tile.store"(%r, %b, %m, %n) {dims = array<i32: 0, 1>, options = {}} : (!t, !a, index, index) -> ()
  return
}
