// Few tests; threads that meet; more to compute than to test.
// RUN: tilec opt %s --passes split-edges --target sm_80 | filecheck %s

!v = memref<?xf32, strided<[1]>>
!u = tensor<4096xf32, #gpu_tile.layout<"T(128):(1@0) V(32):(128@0)">>
!t = tensor<2048xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(128@0)">>

// CHECK-LABEL: @few
// CHECK-NOT: scf.if
func.func @few(%a: !v, %b: !v {tile.unbounded = array<i32: 0>}, %n: index) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !t
  %y = arith.mulf %x, %x : !t
  return
}

// CHECK-LABEL: @meeting
// CHECK-NOT: scf.if
func.func @meeting(%a: !v, %b: !v, %n: index) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !u
  "gpu_tile.sync"() {barrier = 1 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  "tile.store"(%x, %b, %n) {dims = array<i32: 0>, options = {}} : (!u, !v, index) -> ()
  return
}

// CHECK-LABEL: @much_computed
// CHECK-NOT: scf.if
func.func @much_computed(%a: !v, %b: !v, %n: index) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !u
  %y0 = arith.mulf %x, %x : !u
  %y1 = arith.mulf %y0, %x : !u
  %y2 = arith.mulf %y1, %x : !u
  %y3 = arith.mulf %y2, %x : !u
  %y4 = arith.mulf %y3, %x : !u
  %y5 = arith.mulf %y4, %x : !u
  %y6 = arith.mulf %y5, %x : !u
  %y7 = arith.mulf %y6, %x : !u
  %y8 = arith.mulf %y7, %x : !u
  %y9 = arith.mulf %y8, %x : !u
  %y10 = arith.mulf %y9, %x : !u
  %y11 = arith.mulf %y10, %x : !u
  %y12 = arith.mulf %y11, %x : !u
  %y13 = arith.mulf %y12, %x : !u
  %y14 = arith.mulf %y13, %x : !u
  %y15 = arith.mulf %y14, %x : !u
  %y16 = arith.mulf %y15, %x : !u
  %y17 = arith.mulf %y16, %x : !u
  %y18 = arith.mulf %y17, %x : !u
  %y19 = arith.mulf %y18, %x : !u
  %y20 = arith.mulf %y19, %x : !u
  %y21 = arith.mulf %y20, %x : !u
  %y22 = arith.mulf %y21, %x : !u
  %y23 = arith.mulf %y22, %x : !u
  %y24 = arith.mulf %y23, %x : !u
  %y25 = arith.mulf %y24, %x : !u
  %y26 = arith.mulf %y25, %x : !u
  %y27 = arith.mulf %y26, %x : !u
  %y28 = arith.mulf %y27, %x : !u
  %y29 = arith.mulf %y28, %x : !u
  %y30 = arith.mulf %y29, %x : !u
  %y31 = arith.mulf %y30, %x : !u
  %y32 = arith.mulf %y31, %x : !u
  %y33 = arith.mulf %y32, %x : !u
  %y34 = arith.mulf %y33, %x : !u
  %y35 = arith.mulf %y34, %x : !u
  "tile.store"(%y35, %b, %n) {dims = array<i32: 0>, options = {}} : (!u, !v, index) -> ()
  return
}

// Launches of few programs; from how many on another kernel is faster.
// CHECK: func.func @not_many({{.*}}tile.crowd = 16 : i32
// CHECK-NOT: scf.if
func.func @not_many(%a: !v, %b: !v, %n: index) attributes {tile.kernel} {
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !u
  "tile.store"(%x, %b, %n) {dims = array<i32: 0>, options = {}} : (!u, !v, index) -> ()
  return
}
