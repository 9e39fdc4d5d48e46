// Rows that begin anywhere: every access, and every column, wraps by what the store's row is short of alignment.
// RUN: tilec opt %s --passes wrap-rows --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!w = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @softmax
func.func @softmax(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[ROW:.*]] = "tile.program_id"
  // CHECK-NEXT: %[[SHIFT:.*]] = "tile.misalignment"(%arg1, %[[ROW]], %{{.*}}) {bytes = 32 : i32}
  // CHECK: %[[FROM:.*]] = arith.subi %{{.*}}, %[[SHIFT]] : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: "tile.load"(%arg0, %[[ROW]], %[[FROM]]) {{.*}}wrapped = true
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4224xf16>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f16, %q: f16):
    %r = arith.addf %p, %q : f16
    gpu.yield %r : f16
  }) {axis = 0 : i32} : (tensor<4224xf16>) -> tensor<f16>
  %t = "tile.broadcast"(%s) {dims = array<i32>} : (tensor<f16>) -> tensor<4224xf16>
  %y = arith.divf %x, %t : tensor<4224xf16>
  // CHECK: "tile.store"(%{{.*}}, %arg1, %[[ROW]], %[[FROM]]) {{.*}}cache = "streaming", wrapped = true
  "tile.store"(%y, %b, %row, %c0) {dims = array<i32: 1>, options = {cache = "streaming"}} : (tensor<4224xf16>, !m, index, index) -> ()
  return
}

// Columns are those of the elements that are there; the shift counts elements of the narrowest array.
// CHECK-LABEL: @masked
func.func @masked(%a: !m, %b: !w, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[SHIFT:.*]] = "tile.misalignment"(%arg1, {{.*}}) {bytes = 64 : i32}
  %i = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x2048xi32>
  %zero = arith.constant dense<0.0> : tensor<1x2048xf32>
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<1x2048xf16>
  %v = arith.extf %x : tensor<1x2048xf16> to tensor<1x2048xf32>
  %size = tensor.splat %n : tensor<1x2048xi32>
  // CHECK: %[[BY:.*]] = arith.index_cast %[[SHIFT]] : index to i32
  // CHECK: %[[ALL:.*]] = tensor.splat %[[BY]]
  // CHECK: %[[COLUMN:.*]] = arith.subi %{{.*}}, %[[ALL]]
  // CHECK: %[[AROUND:.*]] = arith.addi %[[COLUMN]], %{{.*}}
  // CHECK: %[[FRONT:.*]] = arith.cmpi slt, %[[COLUMN]], %{{.*}}
  // CHECK: %[[AT:.*]] = arith.select %[[FRONT]], %[[AROUND]], %[[COLUMN]]
  // CHECK: arith.cmpi ult, %[[AT]], %{{.*}}
  %in = arith.cmpi ult, %i, %size : tensor<1x2048xi32>
  %y = arith.select %in, %v, %zero : tensor<1x2048xi1>, tensor<1x2048xf32>
  // CHECK: "tile.store"({{.*}}wrapped = true
  "tile.store"(%y, %b, %row, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<1x2048xf32>, !w, index, index) -> ()
  return
}

// A row of a loop's wraps inside it.
// CHECK-LABEL: @in_a_loop
func.func @in_a_loop(%a: !m, %b: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for %[[ROW:.*]] = 
  // CHECK-NEXT: "tile.misalignment"(%arg1, %[[ROW]]
  scf.for %row = %c0 to %n step %c1 {
    %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<2048xf16>
    "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<2048xf16>, !m, index, index) -> ()
  }
  return
}
