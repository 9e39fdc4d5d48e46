// Phantoms become the neutral element where there is one, else a flag keeps them out.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!t = tensor<37xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!s = tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>

// CHECK-LABEL: llvm.func @neutral_element
func.func @neutral_element(%x: !m) attributes {tile.kernel} {
  // CHECK: %[[NEUTRAL:.*]] = arith.constant -0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  // Only the second register of a lane can be a phantom.
  // CHECK: %[[MASKED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NEUTRAL]] : f32
  // CHECK-NEXT: arith.addf %{{.*}}, %[[MASKED]]
  // CHECK-NOT: arith.select
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @flag
func.func @flag(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  // The first register counts in every lane, so no flag travels with the shuffles.
  // CHECK: %[[SUM:.*]] = math.absf
  // CHECK: arith.select %{{.*}}, %[[SUM]], %{{.*}} : f32
  // CHECK-COUNT-5: nvvm.shfl.sync
  // CHECK-NOT: nvvm.shfl.sync
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    %a = math.absf %r : f32
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}
