// What meets in a loop and is short lies in each warp, whole: its sums are shuffles, and so is what
// gives each thread its part. A longer row is spread over the warps.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xf32, strided<[64, 1]>>
!v = memref<?xf32, strided<[1]>>
!t = tensor<64x64xf32>

// CHECK-LABEL: @short
// CHECK: %[[SUMS:.*]] = "tile.scan"
// CHECK: -> tensor<64xf32, #gpu_tile.layout<"T(32,4):(2@0,0) V(2):(1@0)">>
// CHECK: "gpu_tile.convert_layout"(%[[SUMS]]) {{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(16,8):(0,1@0) V(8):(8@0)">>
func.func @short(%x: !m {tile.facts = {align = 16 : i32}}, %y: !m {tile.facts = {align = 16 : i32}}, %d: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : !m
  scf.for %t = %c0 to %n step %c64 {
    %rate = "tile.load"(%d, %t) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> tensor<64xf32>
    %sums = "tile.scan"(%rate) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      gpu.yield %s : f32
    }) {axis = 0 : i32, reverse = false} : (tensor<64xf32>) -> tensor<64xf32>
    %tile = "tile.load"(%x, %t, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
    %rows = "tile.broadcast"(%sums) {dims = array<i32: 0>} : (tensor<64xf32>) -> !t
    %product = arith.mulf %tile, %rows : !t
    "tile.store"(%product, %y, %t, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @long
// CHECK: "tile.scan"
// CHECK: -> tensor<512xf32, #gpu_tile.layout<"T(32,4):(1@0,128@0) V(4):(32@0)">>
func.func @long(%d: !v, %y: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %n = memref.dim %d, %c0 : !v
  scf.for %t = %c0 to %n step %c512 {
    %rate = "tile.load"(%d, %t) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> tensor<512xf32>
    %sums = "tile.scan"(%rate) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      gpu.yield %s : f32
    }) {axis = 0 : i32, reverse = false} : (tensor<512xf32>) -> tensor<512xf32>
    "tile.store"(%sums, %y, %t) {dims = array<i32: 0>, options = {}} : (tensor<512xf32>, !v, index) -> ()
  }
  return
}
