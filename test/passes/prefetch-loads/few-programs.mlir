// Large tiles, and elements that come one by one: where a multiprocessor has few programs, as many iterations are
// loaded as it has under way with many. A kernel for any number says up to how many programs one for those is faster.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 4 | filecheck %s

!line = memref<?xf32, strided<[1]>>
!half = memref<?x256xf16, strided<[256, 1]>>
!large = tensor<2048xf32, #gpu_tile.layout<"T(128):(4@0) V(4,4):(1@0,512@0)">>
!odd = tensor<256xf16, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>

// CHECK-LABEL: func.func @any(
// CHECK-SAME: tile.few_programs = 4 : i32
// CHECK: scf.for
// CHECK-NOT: tile.loads_ahead
// CHECK: return
func.func @any(%x: !line, %y: !line) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %n = memref.dim %x, %c0 : !line
  scf.for %i = %c0 to %n step %c2048 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!line, index) -> !large
    "tile.store"(%v, %y, %i) {dims = array<i32: 0>, options = {}} : (!large, !line, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @few(
// CHECK: %{{.*}}:4 = scf.if
// CHECK-COUNT-4: "tile.load"
// CHECK: } else {
// CHECK: scf.for
// CHECK-COUNT-4: "tile.store"
// CHECK: tile.loads_ahead
func.func @few(%x: !line, %y: !line) attributes {tile.kernel, tile.programs_per_sm = 4 : i32} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %n = memref.dim %x, %c0 : !line
  scf.for %i = %c0 to %n step %c2048 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!line, index) -> !large
    "tile.store"(%v, %y, %i) {dims = array<i32: 0>, options = {}} : (!large, !line, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @apart(
// CHECK-SAME: tile.few_programs = 8 : i32
// CHECK: scf.for
// CHECK-COUNT-4: "tile.load"
// CHECK-COUNT-4: arith.addf
// CHECK: tile.loads_ahead
func.func @apart(%x: !half, %y: !half) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0.0> : !odd
  %n = memref.dim %x, %c0 : !half
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %none) -> (!odd) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f16} : (!half, index, index) -> !odd
    %next = arith.addf %h, %v : !odd
    scf.yield %next : !odd
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!odd, !half, index, index) -> ()
  return
}

// CHECK-LABEL: func.func @few_apart(
// CHECK: scf.for
// CHECK-COUNT-16: "tile.load"
// CHECK-COUNT-16: arith.addf
// CHECK: tile.loads_ahead
func.func @few_apart(%x: !half, %y: !half) attributes {tile.kernel, tile.programs_per_sm = 8 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0.0> : !odd
  %n = memref.dim %x, %c0 : !half
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %none) -> (!odd) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f16} : (!half, index, index) -> !odd
    %next = arith.addf %h, %v : !odd
    scf.yield %next : !odd
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!odd, !half, index, index) -> ()
  return
}
