// Demands that cannot be met.
// RUN: tilec opt %s --passes split-sums --target sm_90a --num-warps 1 --split-input-file --verify-diagnostics

!x = tensor<16x16xf16>
!y = tensor<16x8xf16>
!c = tensor<16x8xf32>

// expected-error @below {{sum_parts=2 was asked for, but no loop, or more than one, sums outside of branches and other loops}}
func.func @no_loop() attributes {tile.kernel, tile.sum_parts = 2 : i32} { return }

// -----
!x = tensor<16x16xf16>
!y = tensor<16x8xf16>
!c = tensor<16x8xf32>

// A sum that each iteration also sees.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
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
!x = tensor<16x16xf16>
!y = tensor<16x8xf16>
!c = tensor<16x8xf32>

// A sum that an inner loop scales.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
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

// -----
!v = tensor<16xf32>
!i = tensor<16xi32>
!m = memref<?x?xf32, strided<[?, 1]>>

// Of equals the last: what a part without any begins with would win.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
func.func @last(%n: index, %from: !m, %start: !v) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0> : !i
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%best = %start, %place = %none) -> (!v, !i) {
    %row = "tile.load"(%from, %k, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !v
    %one = arith.index_cast %k : index to i32
    %here = tensor.splat %one : !i
    %less = arith.cmpf ole, %row, %best : !v
    %to = arith.select %less, %here, %place : tensor<16xi1>, !i
    %least = arith.minimumf %row, %best : !v
    scf.yield %least, %to : !v, !i
  }
  return
}

// -----
!v = tensor<16xf32>
!i = tensor<16xi32>
!m = memref<?x?xf32, strided<[?, 1]>>

// The place of the least, beside the greatest.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
func.func @other_way(%n: index, %from: !m, %start: !v) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0> : !i
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%best = %start, %place = %none) -> (!v, !i) {
    %row = "tile.load"(%from, %k, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !v
    %one = arith.index_cast %k : index to i32
    %here = tensor.splat %one : !i
    %less = arith.cmpf olt, %row, %best : !v
    %to = arith.select %less, %here, %place : tensor<16xi1>, !i
    %most = arith.maximumf %row, %best : !v
    scf.yield %most, %to : !v, !i
  }
  return
}

// -----
!v = tensor<16xf32>
!i = tensor<16xi32>
!m = memref<?x?xf32, strided<[?, 1]>>

// How often there was a less one: a comparison that counts.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
func.func @counted(%n: index, %from: !m, %start: !v) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0> : !i
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%best = %start, %place = %none) -> (!v, !i) {
    %row = "tile.load"(%from, %k, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !v
    %one = arith.index_cast %k : index to i32
    %here = tensor.splat %one : !i
    %less = arith.cmpf olt, %row, %best : !v
    %often = arith.extui %less : tensor<16xi1> to !i
    %to = arith.addi %place, %often : !i
    %least = arith.minimumf %row, %best : !v
    scf.yield %least, %to : !v, !i
  }
  return
}

// -----
!v = tensor<16xf32>
!i = tensor<16xi32>
!m = memref<?x?xf32, strided<[?, 1]>>

// Another number than the carried one decides.
// expected-error @below {{sum_parts=2 was asked for, but the loop carries what is no sum from zero, least or greatest in 32 bits or more}}
func.func @elsewhere_less(%n: index, %from: !m, %start: !v) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0> : !i
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%best = %start, %place = %none) -> (!v, !i) {
    %row = "tile.load"(%from, %k, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !v
    %one = arith.index_cast %k : index to i32
    %here = tensor.splat %one : !i
    %less = arith.cmpf olt, %row, %start : !v
    %to = arith.select %less, %here, %place : tensor<16xi1>, !i
    %least = arith.minimumf %row, %best : !v
    scf.yield %least, %to : !v, !i
  }
  return
}
