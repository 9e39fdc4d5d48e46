// Loops that hand nothing on, as those that only add up: of many programs two iterations are loaded at once, of few
// eight ahead, or of any number, which says that many want another kernel. One that hands something on stays ahead.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 4 | filecheck %s

!line = memref<?xf16, strided<[1]>>
!t = tensor<1024xf16, #gpu_tile.layout<"T(128):(8@0) V(8):(1@0)">>

// CHECK-LABEL: func.func @many(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: "tile.load"
// CHECK: "tile.load"
// CHECK-NOT: "tile.load"
// CHECK: arith.addf
// CHECK: "tile.store"
// CHECK: arith.addf
// CHECK: "tile.store"
// CHECK: tile.loads_ahead
func.func @many(%x: !line {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}, %y: !line) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %n = memref.dim %x, %c0 : !line
  scf.for %i = %c0 to %n step %c1024 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f16} : (!line, index) -> !t
    %w = arith.addf %v, %v : !t
    "tile.store"(%w, %y, %i) {dims = array<i32: 0>, options = {}} : (!t, !line, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @any(
// CHECK-SAME: tile.crowd = 16 : i32
// CHECK: %{{.*}}:8 = scf.if
// CHECK-COUNT-8: "tile.load"
// CHECK: } else {
// CHECK: scf.for
func.func @any(%x: !line {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}, %y: !line) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %n = memref.dim %x, %c0 : !line
  scf.for %i = %c0 to %n step %c1024 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f16} : (!line, index) -> !t
    %w = arith.addf %v, %v : !t
    "tile.store"(%w, %y, %i) {dims = array<i32: 0>, options = {}} : (!t, !line, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func @handed_on(
// CHECK: %{{.*}}:8 = scf.if
// CHECK-COUNT-8: "tile.load"
// CHECK: } else {
func.func @handed_on(%x: !line {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}, %y: !line, %h: !t) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %n = memref.dim %x, %c0 : !line
  %r = scf.for %i = %c0 to %n step %c1024 iter_args(%g = %h) -> (!t) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f16} : (!line, index) -> !t
    %w = arith.mulf %v, %g : !t
    "tile.store"(%w, %y, %i) {dims = array<i32: 0>, options = {}} : (!t, !line, index) -> ()
    scf.yield %w : !t
  }
  return
}
