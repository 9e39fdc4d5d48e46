// A run of registers, doubling steps over lanes, the lane before, then one combination an element.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?xi32, strided<[1]>>
!t = tensor<64xi32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>

// CHECK-LABEL: llvm.func @forward
func.func @forward(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!m, index) -> !t
  // CHECK: nvvm.shfl.sync  up
  // CHECK-COUNT-5: nvvm.shfl.sync  up
  // CHECK-NOT: nvvm.shfl.sync
  %y = "tile.scan"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32, reverse = false} : (!t) -> !t
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @reverse
func.func @reverse(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!m, index) -> !t
  // CHECK-COUNT-6: nvvm.shfl.sync  down
  // CHECK-NOT: nvvm.shfl.sync
  %y = "tile.scan"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32, reverse = true} : (!t) -> !t
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  return
}
