// What is combined is asserted of by each thread, where both are elements; 37 of 64 registers are.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file --verify-diagnostics | filecheck %s

!m = memref<?xi32, strided<[1]>>
!t = tensor<37xi32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!s = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>

// CHECK-LABEL: llvm.func @reduced
func.func @reduced(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!m, index) -> !t
  // CHECK: %[[VALID:.*]] = arith.cmpi slt
  // CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
  // CHECK: %[[OK:.*]] = arith.cmpi slt, %[[SUM]]
  // CHECK: %[[WRONG:.*]] = arith.xori %[[OK]]
  // CHECK: %[[FAILED:.*]] = arith.andi %{{.*}}, %[[WRONG]] : i1
  // CHECK: scf.if %[[FAILED]] {
  // CHECK: llvm.call @__assertfail
  // CHECK: nvvm.shfl.sync
  %y = "tile.reduce"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %c9 = arith.constant 9 : i32
    %r = arith.addi %p, %q : i32
    %ok = arith.cmpi slt, %r, %c9 : i32
    "tile.assert"(%ok) {message = "small"} : (i1) -> ()
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%y, %x, %c0) {dims = array<i32>, options = {}} : (!s, !m, index) -> ()
  return
}

// -----
!m = memref<?xi32, strided<[1]>>
!t = tensor<37xi32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>

func.func @scanned(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!m, index) -> !t
  %y = "tile.scan"(%v) ({
  ^bb0(%p: i32, %q: i32):
    %c9 = arith.constant 9 : i32
    %r = arith.addi %p, %q : i32
    %ok = arith.cmpi slt, %r, %c9 : i32
    // expected-error @below {{an assertion in the combination of a scan}}
    "tile.assert"(%ok) {message = "small"} : (i1) -> ()
    gpu.yield %r : i32
  }) {axis = 0 : i32, reverse = false} : (!t) -> !t
  "tile.store"(%y, %x, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  return
}
