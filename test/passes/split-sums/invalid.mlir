// Demands that cannot be met.
// RUN: tilec opt %s --passes split-sums --target sm_90a --num-warps 1 --split-input-file --verify-diagnostics

!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// expected-error @below {{sum_parts=2 was asked for, but no loop, or more than one, multiplies outside of branches and other loops}}
func.func @no_loop() attributes {tile.kernel, tile.sum_parts = 2 : i32} { return }

// -----
!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// A sum that each iteration also sees.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero in 32 bits or more}}
func.func @seen(%n: index, %x: !x, %y: !y) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    %e = arith.mulf %d, %s : !c
    scf.yield %e : !c
  }
  return
}

// -----
!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// A sum that an inner loop scales.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero in 32 bits or more}}
func.func @scaled(%n: index, %x: !x, %y: !y, %f: !c) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %h = %c0 to %n step %c1 iter_args(%t = %zero) -> (!c) {
    %inner = scf.for %k = %c0 to %n step %c1 iter_args(%s = %t) -> (!c) {
      %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
      %e = arith.mulf %d, %f : !c
      scf.yield %e : !c
    }
    scf.yield %inner : !c
  }
  return
}
