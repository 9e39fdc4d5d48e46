// Matrices of a stack are loaded and stored as matrices.
// RUN: tilec opt %s --passes simplify | filecheck %s

!stack = memref<?x?x64xf16, strided<[?, 64, 1]>>

// CHECK-LABEL: @matrices
// CHECK: %[[T:.*]] = "tile.load"(%arg0, %arg2, %c0, %c0) {dims = array<i32: 1, 2>, {{.*}} -> tensor<32x64xf16>
// CHECK-NEXT: "tile.store"(%[[T]], %arg1, %arg2, %c0, %c0) {dims = array<i32: 1, 2>
// CHECK-NEXT: "tile.store"(%[[T]], %arg1, %c0, %arg2, %c0) {dims = array<i32: 0, 2>
// CHECK-NEXT: return
func.func @matrices(%x: !stack, %y: !stack, %z: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %t = "tile.load"(%x, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x32x64xf16>
  %m = "tile.reshape"(%t) : (tensor<1x32x64xf16>) -> tensor<32x64xf16>
  %b = "tile.broadcast"(%m) {dims = array<i32: 1, 2>} : (tensor<32x64xf16>) -> tensor<1x32x64xf16>
  "tile.store"(%b, %y, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<1x32x64xf16>, !stack, index, index, index) -> ()
  %r = "tile.reshape"(%m) : (tensor<32x64xf16>) -> tensor<32x1x64xf16>
  "tile.store"(%r, %y, %c0, %z, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<32x1x64xf16>, !stack, index, index, index) -> ()
  return
}

// Not what is split or joined, repeated, one row, or used as it is, too.
// CHECK-LABEL: @others
// CHECK-COUNT-2: dims = array<i32: 0, 1, 2>, options = {}, padding
// CHECK: dims = array<i32: 1, 2>, options = {}, padding
// CHECK-COUNT-4: {dims = array<i32: 0, 1, 2>, options = {}} :
func.func @others(%x: !stack, %y: !stack, %z: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %t = "tile.load"(%x, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x32x64xf16>
  %u = "tile.load"(%x, %z, %z, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x32x64xf16>
  %v = "tile.load"(%x, %c0, %z, %c0) {dims = array<i32: 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<2x64xf16>
  %m = "tile.reshape"(%t) : (tensor<1x32x64xf16>) -> tensor<32x64xf16>
  %both = arith.addf %t, %u : tensor<1x32x64xf16>
  %halves = "tile.reshape"(%u) : (tensor<1x32x64xf16>) -> tensor<2x16x64xf16>
  %pair = "tile.broadcast"(%m) {dims = array<i32: 1, 2>} : (tensor<32x64xf16>) -> tensor<2x32x64xf16>
  %turned = "tile.reshape"(%v) : (tensor<2x64xf16>) -> tensor<1x64x2xf16>
  "tile.store"(%both, %y, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<1x32x64xf16>, !stack, index, index, index) -> ()
  "tile.store"(%halves, %y, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<2x16x64xf16>, !stack, index, index, index) -> ()
  "tile.store"(%pair, %y, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<2x32x64xf16>, !stack, index, index, index) -> ()
  "tile.store"(%turned, %y, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<1x64x2xf16>, !stack, index, index, index) -> ()
  return
}

// What is computed of loads, element by element, comes without them.
// CHECK-LABEL: @computed
// CHECK: %[[T:.*]] = "tile.load"(%arg0, %arg2, %c0, %c0) {dims = array<i32: 1, 2>, {{.*}} -> tensor<32x64xf16>
// CHECK: %[[W:.*]] = "tile.load"(%arg0, %arg2, %arg2, %c0) {dims = array<i32: 0, 2>, {{.*}} -> tensor<1x64xf16>
// CHECK: %[[N:.*]] = arith.negf %[[W]] : tensor<1x64xf16>
// CHECK: %[[B:.*]] = "tile.broadcast"(%[[N]]) {dims = array<i32: 0, 1>} : (tensor<1x64xf16>) -> tensor<32x64xf16>
// CHECK: %[[M:.*]] = arith.mulf %[[T]], %[[B]] : tensor<32x64xf16>
// CHECK: %[[S:.*]] = arith.addf %[[M]], %{{.*}} : tensor<32x64xf16>
// CHECK-NEXT: "tile.store"(%[[S]], %arg1, %arg2, %c0, %c0) {dims = array<i32: 1, 2>
func.func @computed(%x: !stack, %y: !stack, %z: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : tensor<1x32x64xf16>
  %t = "tile.load"(%x, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x32x64xf16>
  %w = "tile.load"(%x, %z, %z, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x1x64xf16>
  %n = arith.negf %w : tensor<1x1x64xf16>
  %b = "tile.broadcast"(%n) {dims = array<i32: 0, 1, 2>} : (tensor<1x1x64xf16>) -> tensor<1x32x64xf16>
  %m = arith.mulf %t, %b : tensor<1x32x64xf16>
  %s = arith.addf %m, %two : tensor<1x32x64xf16>
  %r = "tile.reshape"(%s) : (tensor<1x32x64xf16>) -> tensor<32x64xf16>
  "tile.store"(%r, %y, %z, %c0, %c0) {dims = array<i32: 1, 2>, options = {}} : (tensor<32x64xf16>, !stack, index, index, index) -> ()
  return
}

// Not what someone has with them, too, nor what is no load.
// CHECK-LABEL: @computed_for_others
// CHECK-COUNT-2: tile.reshape
func.func @computed_for_others(%x: !stack, %y: !stack, %z: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %t = "tile.load"(%x, %z, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}, padding = 0.0 : f16} : (!stack, index, index, index) -> tensor<1x32x64xf16>
  %m = arith.mulf %t, %t : tensor<1x32x64xf16>
  %r = "tile.reshape"(%m) : (tensor<1x32x64xf16>) -> tensor<32x64xf16>
  "tile.store"(%r, %y, %z, %c0, %c0) {dims = array<i32: 1, 2>, options = {}} : (tensor<32x64xf16>, !stack, index, index, index) -> ()
  "tile.store"(%m, %y, %c0, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (tensor<1x32x64xf16>, !stack, index, index, index) -> ()
  %e = "tile.transpose"(%t) {permutation = array<i32: 0, 2, 1>} : (tensor<1x32x64xf16>) -> tensor<1x64x32xf16>
  %n = arith.negf %e : tensor<1x64x32xf16>
  %q = "tile.reshape"(%n) : (tensor<1x64x32xf16>) -> tensor<64x32xf16>
  "tile.store"(%q, %y, %z, %c0, %c0) {dims = array<i32: 1, 2>, options = {}} : (tensor<64x32xf16>, !stack, index, index, index) -> ()
  return
}
