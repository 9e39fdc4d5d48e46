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

// 1024 threads have 64 registers each: a tile of 32 elements a thread goes piece by piece.
// CHECK-LABEL: @of_many_threads
// CHECK-COUNT-8: math.exp
// CHECK-NEXT: arith.divf
// CHECK-COUNT-7: arith.divf
// CHECK-NEXT: math.exp
!w = tensor<32768xf32, #gpu_tile.layout<"T(1024):(4@0) V(4,8):(1@0,4096@0)">>
func.func @of_many_threads(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel, tile.num_warps = 32 : i32} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !w
  %e = math.exp %x : !w
  %y = arith.divf %x, %e : !w
  "tile.store"(%y, %a, %c0) {dims = array<i32: 0>, options = {}} : (!w, !m, index) -> ()
  return
}

// A comparison with a bound is that of the piece's own coordinates: of three columns, the first
// eight elements lie in rows 0 to 2, on one side of a multiple of 4; the next in rows 2 to 5.
// CHECK-LABEL: @bounds
// CHECK: arith.cmpi slt
// CHECK-NEXT: math.exp
// CHECK-COUNT-7: math.exp
// CHECK: arith.select
// CHECK-COUNT-7: arith.select
// CHECK-NEXT: arith.cmpi slt
// CHECK-NEXT: arith.cmpi slt
// CHECK-NEXT: math.exp
!r = tensor<8192xi32, #gpu_tile.layout<"T(128):(64@0) V(64):(1@0)">>
!t = tensor<8192x3xf32, #gpu_tile.layout<"T(128):(64@0) V(3,64):(1@1,1@0)">>
!n = tensor<8192x3xi32, #gpu_tile.layout<"T(128):(64@0) V(3,64):(1@1,1@0)">>
!b = tensor<8192x3xi1, #gpu_tile.layout<"T(128):(64@0) V(3,64):(1@1,1@0)">>
func.func @bounds(%a: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %four = arith.constant 4 : i32
  %bound = arith.muli %n, %four : i32
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> !t
  %row = "tile.iota"() {axis = 0 : i32} : () -> !r
  %at = "tile.broadcast"(%row) {dims = array<i32: 0>} : (!r) -> !n
  %limit = tensor.splat %bound : !n
  %is = arith.cmpi slt, %at, %limit : !n
  %e = math.exp %x : !t
  %y = arith.divf %x, %e : !t
  %z = arith.select %is, %y, %x : !b, !t
  "tile.store"(%z, %a, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
