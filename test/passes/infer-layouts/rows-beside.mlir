// Loads a row or two apart: a thread has rows one behind the other, which it loads once. Farther apart than the rows
// of a tile they share nothing, and rows of a thread lie apart, so that those of a warp are neighbours.
// RUN: tilec opt %s --passes infer-layouts --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<16x32xf32>

// CHECK-LABEL: @near
// CHECK-COUNT-3: "tile.load"{{.*}} -> tensor<16x32xf32, #gpu_tile.layout<"T(8,4):(4@1,4@0) V(4,4):(1@1,1@0)">>
// CHECK-NOT: convert_layout
func.func @near(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %q = arith.addi %p, %c1 : index
  %r = arith.subi %p, %c2 : index
  %x = "tile.load"(%a, %p, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %y = "tile.load"(%a, %q, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %z = "tile.load"(%a, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %s = arith.addf %x, %y : !t
  %u = arith.addf %s, %z : !t
  "tile.store"(%u, %b, %p, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @far
// CHECK-COUNT-2: "tile.load"{{.*}} -> tensor<16x32xf32, #gpu_tile.layout<"T(8,4):(4@1,1@0) V(4,4):(1@1,4@0)">>
func.func @far(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
               %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %q = arith.addi %p, %c16 : index
  %x = "tile.load"(%a, %p, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %y = "tile.load"(%a, %q, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %s = arith.addf %x, %y : !t
  "tile.store"(%s, %b, %p, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}
