// Elementwise work on a tile of which a thread cannot hold two: eight elements from the first op to
// the last, then the next eight. What is added at the end is loaded in front of all.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!x = tensor<16384xf32, #gpu_tile.layout<"T(128):(4@0) V(4,32):(1@0,512@0)">>

// CHECK-LABEL: @forks
// CHECK-COUNT-64: ld.global
// CHECK-COUNT-8: math.exp
// CHECK-NEXT: arith.divf
// CHECK-COUNT-7: arith.divf
// CHECK-NEXT: arith.addf
// CHECK-COUNT-7: arith.addf
// CHECK-NEXT: math.exp
// CHECK-NOT: ld.global
func.func @forks(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !x
  %e = math.exp %x : !x
  %y = arith.divf %x, %e : !x
  %r = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !x
  %z = arith.addf %y, %r : !x
  "tile.store"(%z, %a, %c0) {dims = array<i32: 0>, options = {}} : (!x, !m, index) -> ()
  return
}

// Each result takes the place of what it is computed from: nothing is held twice, and all stays in
// its order.
// CHECK-LABEL: @chain
// CHECK-COUNT-128: math.exp
// CHECK-NEXT: arith.mulf
func.func @chain(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}, %s: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !x
  %e = math.exp %x : !x
  %f = tensor.splat %s : !x
  %y = arith.mulf %e, %f : !x
  "tile.store"(%y, %a, %c0) {dims = array<i32: 0>, options = {}} : (!x, !m, index) -> ()
  return
}
