// One instruction combines 32-bit integers of all lanes; fewer lanes take butterflies.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?xi32, strided<[1]>>
!n = memref<?x?xi32, strided<[?, 1]>>
!t = tensor<64xi32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!h = tensor<2x16xi32, #gpu_tile.layout<"T(16,2):(1@1,1@0) V():()">>

// CHECK-LABEL: llvm.func @whole_warp
func.func @whole_warp(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!m, index) -> !t
  // CHECK: arith.maxui
  // CHECK: nvvm.redux.sync  umax
  // CHECK-NOT: nvvm.shfl.sync
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxui %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!t) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  return
}

// CHECK-LABEL: llvm.func @half_warp
func.func @half_warp(%x: !n) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i32, options = {}} : (!n, index, index) -> !h
  // CHECK-NOT: nvvm.redux.sync
  // CHECK-COUNT-4: nvvm.shfl.sync  bfly
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxui %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 1 : i32} : (!h) -> tensor<2xi32, #gpu_tile.layout<"T(16,2):(0,1@0) V():()">>
  return
}
