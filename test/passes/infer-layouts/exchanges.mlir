// What exchanges near elements most often wants them in registers; rows of one warp each stay there.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 1 | filecheck %s
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 4 | filecheck %s --check-prefix WARPS

!x = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<4x128xf32>

// The loads stay coalesced: a conversion between shuffles less often than the exchanges would.
// CHECK-LABEL: @near
// CHECK: "tile.load"{{.*}} -> tensor<4x128xf32, #gpu_tile.layout<"T(32):(1@1) V(4,4):(32@1,1@0)">>
// CHECK: gpu_tile.convert_layout
// CHECK-COUNT-6: "tile.exchange"{{.*}} -> tensor<4x128xf32, #gpu_tile.layout<"T(32):(4@1) V(4,4):(1@1,1@0)">>
// CHECK: gpu_tile.convert_layout
func.func @near(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!x, index, index) -> !t
  %a = "tile.exchange"(%v) {axis = 1 : i32, mask = 1 : i32} : (!t) -> !t
  %b = "tile.exchange"(%a) {axis = 1 : i32, mask = 2 : i32} : (!t) -> !t
  %c = "tile.exchange"(%b) {axis = 1 : i32, mask = 1 : i32} : (!t) -> !t
  %d = "tile.exchange"(%c) {axis = 1 : i32, mask = 2 : i32} : (!t) -> !t
  %e = "tile.exchange"(%d) {axis = 1 : i32, mask = 1 : i32} : (!t) -> !t
  %f = "tile.exchange"(%e) {axis = 1 : i32, mask = 3 : i32} : (!t) -> !t
  "tile.store"(%f, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}

// WARPS-LABEL: @far
// WARPS-NOT: gpu_tile.convert_layout
// WARPS: "tile.exchange"{{.*}} -> tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(4):(32@1)">>
func.func @far(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!x, index, index) -> !t
  %a = "tile.exchange"(%v) {axis = 1 : i32, mask = 64 : i32} : (!t) -> !t
  "tile.store"(%a, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}
