// Half of a vector or less, arrays that are written, rows at any place, different padding.
// RUN: tilec opt %s --passes join-loads --target sm_80 --num-warps 1 | filecheck %s

!a = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
!t = tensor<256xf32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>

// CHECK-LABEL: @alone
// CHECK-NOT: tile.split
func.func @alone(%a: !a {tile.facts = {align = 16 : i32, strides = array<i32: 4, 1>}}, %b: !v, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %m, %c2) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  "tile.store"(%s, %b, %m) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// CHECK-LABEL: @written
// CHECK-NOT: tile.split
func.func @written(%a: !a {tile.facts = {align = 16 : i32, strides = array<i32: 4, 1>}}, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  "tile.store"(%x, %a, %m, %c1) {dims = array<i32: 0>, options = {}} : (!t, !a, index, index) -> ()
  %y = "tile.load"(%a, %m, %c1) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  "tile.store"(%y, %a, %m, %c0) {dims = array<i32: 0>, options = {}} : (!t, !a, index, index) -> ()
  return
}

// CHECK-LABEL: @anywhere
// CHECK-NOT: tile.split
func.func @anywhere(%a: !a {tile.facts = {align = 16 : i32}}, %b: !v, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %m, %c1) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  "tile.store"(%s, %b, %m) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// CHECK-LABEL: @other_padding
// CHECK-NOT: tile.split
func.func @other_padding(%a: !a {tile.facts = {align = 16 : i32, strides = array<i32: 4, 1>}}, %b: !v, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %m, %c1) {dims = array<i32: 0>, options = {}, padding = 1.0 : f32} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  "tile.store"(%s, %b, %m) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}
