// What is no sum, is stored between, or wanted whole, is loaded whole.
// RUN: tilec opt %s --passes sum-in-steps --target sm_90a --num-warps 32 | filecheck %s

!x = tensor<64x4096xf32>
!a = memref<?x?xf32, strided<[?, 1]>>
!y = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @greatest
func.func @greatest(%a: !a, %row: index) -> tensor<4096xf32> attributes {tile.kernel} {
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !x
  %s = "tile.reduce"(%x) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.maximumf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!x) -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// CHECK-LABEL: @sums_of_rows
func.func @sums_of_rows(%a: !a, %row: index) -> tensor<64xf32> attributes {tile.kernel} {
  // CHECK: scf.for
  // CHECK: -> tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !x
  %s = "tile.reduce"(%x) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.addf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 1 : i32} : (!x) -> tensor<64xf32>
  return %s : tensor<64xf32>
}

// CHECK-LABEL: @stored_between
func.func @stored_between(%a: !a, %y: !y, %v: tensor<16xf32>, %row: index) -> tensor<4096xf32> attributes {tile.kernel} {
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !x
  "tile.store"(%v, %y, %c0) {dims = array<i32: 0>, options = {}} : (tensor<16xf32>, !y, index) -> ()
  %s = "tile.reduce"(%x) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.addf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!x) -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// CHECK-LABEL: @returned_too
func.func @returned_too(%a: !a, %row: index) -> (!x, tensor<4096xf32>) attributes {tile.kernel} {
  // CHECK-NOT: scf.for
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !x
  %s = "tile.reduce"(%x) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.addf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (!x) -> tensor<4096xf32>
  return %x, %s : !x, tensor<4096xf32>
}
