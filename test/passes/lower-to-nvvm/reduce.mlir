// Runs of eight in the thread, a tree of them, then one butterfly per lane bit of the axis.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!t = tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
!s = tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>

// CHECK-LABEL: llvm.func @whole_warp
func.func @whole_warp(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  // CHECK: %[[A:.*]] = arith.addf
  // CHECK: %[[B:.*]] = arith.addf %[[A]],
  // CHECK: arith.addf %[[B]],
  // CHECK-COUNT-5: nvvm.shfl.sync  bfly
  // CHECK: %[[LAST:.*]] = arith.addf
  // CHECK-NOT: nvvm.shfl.sync
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}

!long = tensor<512xf32, #gpu_tile.layout<"T(32):(16@0) V(16):(1@0)">>

// CHECK-LABEL: llvm.func @runs
func.func @runs(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !long
  // CHECK-COUNT-6: arith.addf
  // CHECK: %[[FIRST:.*]] = arith.addf
  // CHECK-COUNT-6: arith.addf
  // CHECK: %[[SECOND:.*]] = arith.addf
  // CHECK: arith.addf %[[FIRST]], %[[SECOND]]
  // CHECK: nvvm.shfl.sync
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!long) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @a_tree_of_others
func.func @a_tree_of_others(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  // CHECK: %[[A:.*]] = arith.maximumf
  // CHECK: %[[B:.*]] = arith.maximumf
  // CHECK: arith.maximumf %[[A]], %[[B]]
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}
