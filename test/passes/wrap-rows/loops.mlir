// Rows that begin anywhere, of many warps that walk along them: each part wraps for itself.
// RUN: tilec opt %s --passes wrap-rows --target sm_80 --num-warps 8 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>

// What the loop carries lies as its parts do.
// CHECK-LABEL: @along_a_row
func.func @along_a_row(%a: !m, %b: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %zeros = arith.constant dense<0.0> : tensor<2048xf16>
  // CHECK: %[[ROW:.*]] = "tile.program_id"
  // CHECK: %[[SHIFT:.*]] = "tile.misalignment"(%arg1, %[[ROW]], %{{.*}}) {bytes = 32 : i32}
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: scf.for %[[AT:[a-z0-9]+]] = 
  %sum = scf.for %at = %c0 to %n step %c2048 iter_args(%before = %zeros) -> (tensor<2048xf16>) {
    // CHECK-NEXT: %[[FROM:.*]] = arith.subi %[[AT]], %[[SHIFT]] : index
    // CHECK-NEXT: "tile.load"(%arg0, %[[ROW]], %[[FROM]]) {{.*}}walked = 16 : i32, wrapped = true
    %x = "tile.load"(%a, %row, %at) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<2048xf16>
    %more = arith.addf %before, %x : tensor<2048xf16>
    scf.yield %more : tensor<2048xf16>
  }
  // CHECK: "tile.store"({{.*}}%[[ROW]], %{{.*}}) {dims = array<i32: 1>, options = {wrapped = true}}
  "tile.store"(%sum, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<2048xf16>, !m, index, index) -> ()
  return
}
