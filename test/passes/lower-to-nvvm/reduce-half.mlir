// Two rows of 16-bit elements share a shuffle.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!n = memref<?xf16, strided<[1]>>
!t = tensor<4x32xf16, #gpu_tile.layout<"T(32):(1@1) V(4):(1@0)">>
!s = tensor<4xf16, #gpu_tile.layout<"T(32):(0) V(4):(1@0)">>

// CHECK-LABEL: llvm.func @k
func.func @k(%x: !m, %y: !n) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
  // CHECK-COUNT-10: nvvm.shfl.sync  bfly
  // CHECK-NOT: nvvm.shfl.sync
  %r = "tile.reduce"(%v) ({
  ^bb0(%p: f16, %q: f16):
    %c = arith.maximumf %p, %q : f16
    gpu.yield %c : f16
  }) {axis = 1 : i32} : (!t) -> !s
  "tile.store"(%r, %y, %c0) {dims = array<i32: 0>, options = {}} : (!s, !n, index) -> ()
  return
}
