// Neighbours across a tile: one load of all, of which each is a part.
// RUN: tilec opt %s --passes join-loads --target sm_80 --num-warps 1 | filecheck %s

!a = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<256xf32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>
!v = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @taps
// CHECK: %[[ALL:.*]] = "tile.load"(%{{.*}}, %[[C:.*]], %c0) {dims = array<i32: 0, 1>{{.*}} -> tensor<256x4xf32, #gpu_tile.layout<"T(32):(8@0) V(4,8):(1@1,1@0)">>
// CHECK-NEXT: %[[PARTS:.*]]:4 = "tile.split"(%[[ALL]]) {axis = 1 : i32}
// CHECK-NEXT: %[[X:.*]] = "tile.reshape"(%[[PARTS]]#0) : (tensor<256x1xf32
// CHECK-NEXT: %[[Y:.*]] = "tile.reshape"(%[[PARTS]]#1)
// CHECK-NEXT: %[[Z:.*]] = "tile.reshape"(%[[PARTS]]#2)
// CHECK-NOT: tile.load
// CHECK: %[[S:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT: arith.addf %[[S]], %[[Z]]
func.func @taps(%a: !a {tile.facts = {align = 16 : i32, strides = array<i32: 4, 1>}}, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %c = arith.muli %p, %c64 : index
  %x = "tile.load"(%a, %c, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %c, %c1) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %z = "tile.load"(%a, %c, %c2) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  %r = arith.addf %s, %z : !t
  "tile.store"(%r, %b, %c) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// Pairs from a multiple of 2 on; what is alone stays so.
// CHECK-LABEL: @pairs
// CHECK: "tile.load"(%{{.*}}, %{{.*}}, %[[AT:.*]]) {dims = array<i32: 0, 1>{{.*}} -> tensor<256x2xf32,
// CHECK: "tile.load"({{.*}}) {dims = array<i32: 0>,
// CHECK-NOT: tile.load
func.func @pairs(%a: !a {tile.facts = {align = 16 : i32, strides = array<i32: 2, 1>}}, %b: !v, %m: index) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %k = arith.muli %p, %c2 : index
  %k1 = arith.addi %k, %c1 : index
  %k2 = arith.addi %k, %c2 : index
  %x = "tile.load"(%a, %m, %k) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %y = "tile.load"(%a, %m, %k1) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %z = "tile.load"(%a, %m, %k2) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!a, index, index) -> !t
  %s = arith.addf %x, %y : !t
  %r = arith.addf %s, %z : !t
  "tile.store"(%r, %b, %m) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}
