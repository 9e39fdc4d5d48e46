// The author's order of a grid of dots: along Hilbert's curve, in squares of 16 or of his size.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!t = tensor<16x8xf32, #gpu_tile.layout<"T(8,4):(1@0,2@1) V(2,2):(1@1,8@0)">>
!x = tensor<16x16xf16, #gpu_tile.layout<"T(8,4):(1@0,2@1) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(8,4):(1@1,2@0) V(2,2):(1@0,8@0)">>
!o = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @usual_side
// CHECK: "gpu_tile.tile_order"(%{{.*}}) {group = 16 : i32, order = "hilbert"}
func.func @usual_side(%x: !x, %y: !y, %n: index) attributes {tile.kernel, tile.order = "hilbert"} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %c = arith.constant dense<0.0> : !t
  %s = scf.for %k = %i to %n step %j iter_args(%acc = %c) -> (!t) {
    %d = "tile.dot"(%x, %y, %acc) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !t) -> !t
    scf.yield %d : !t
  }
  return
}

// Of persistent CTAs, too.
// CHECK-LABEL: @own_side
// CHECK: "gpu_tile.tile_order"(%{{.*}}) {group = 8 : i32, order = "hilbert"}
func.func @own_side(%x: !x, %y: !y, %n: index) attributes {tile.kernel, tile.order = ["hilbert", 8 : i32], tile.persistent = true} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %c = arith.constant dense<0.0> : !t
  %s = scf.for %k = %i to %n step %j iter_args(%acc = %c) -> (!t) {
    %d = "tile.dot"(%x, %y, %acc) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !t) -> !t
    scf.yield %d : !t
  }
  return
}

// Whose rows read nothing alike are left in place unless the author knows better.
// CHECK-LABEL: @whatever_they_read
// CHECK: "gpu_tile.tile_order"(%{{.*}}) {group = 4 : i32, order = "grouped"}
!m = memref<?x?xf16, strided<[?, 1]>>
func.func @whatever_they_read(%m: !m, %y: !y, %n: index) attributes {tile.kernel, tile.order = ["grouped", 4 : i32]} {
  %c0 = arith.constant 0 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %zero = arith.constant dense<0.0> : !t
  %r = scf.for %k = %c0 to %n step %n iter_args(%s = %zero) -> (!t) {
    %x = "tile.load"(%m, %i, %j) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !x
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !t) -> !t
    scf.yield %d : !t
  }
  return
}
