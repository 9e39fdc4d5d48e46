// What stays inside warps is left alone.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

// CHECK-LABEL: @axis_in_lanes_and_registers
// CHECK-NOT: gpu_tile.warp_reduce
// CHECK-NOT: gpu_tile.alloc
func.func @axis_in_lanes_and_registers(%x: tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4):(1@1)">>) attributes {tile.kernel} {
  // CHECK: "tile.reduce"
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4):(1@1)">>) -> tensor<4xf32, #gpu_tile.layout<"T(32,4):(0,1@0) V():()">>
  // CHECK: "tile.scan"
  %z = "tile.scan"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32, reverse = false} : (tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4):(1@1)">>) -> tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4):(1@1)">>
  return
}
