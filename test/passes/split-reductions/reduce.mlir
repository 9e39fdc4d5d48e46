// A reduction across warps: each warp's part, the partial results through a buffer, the rest in a thread.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

// CHECK-LABEL: @across_warps
func.func @across_warps(%x: tensor<256xf32, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>) attributes {tile.kernel} {
  // CHECK: %[[P:.*]] = "gpu_tile.warp_reduce"(%{{.*}}) ({
  // CHECK: arith.addf
  // CHECK: {axis = 0 : i32} : {{.*}} -> tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"() {{.*}} !gpu_tile.buffer<tensor<2xf32>
  // CHECK: "gpu_tile.buffer_store"(%[[P]], %[[B]])
  // CHECK-NOT: gpu_tile.sync
  // CHECK: %[[Q:.*]] = "gpu_tile.buffer_load"(%[[B]]) {{.*}} -> tensor<2xf32, #gpu_tile.layout<"T(64):(0) V(2):(1@0)">>
  // CHECK: "tile.reduce"(%[[Q]]) ({
  // CHECK: arith.addf
  // CHECK: -> tensor<f32, #gpu_tile.layout<"T(64):(0) V():()">>
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<256xf32, #gpu_tile.layout<"T(64):(4@0) V(4):(1@0)">>) -> tensor<f32, #gpu_tile.layout<"T(64):(0) V():()">>
  return
}

// A warp that holds phantoms alone has no partial result: 130 elements, 128 a warp, four warps.
// CHECK-LABEL: @warps_without_elements
func.func @warps_without_elements(%x: tensor<130xf32, #gpu_tile.layout<"T(128):(4@0) V(4):(1@0)">>) attributes {tile.kernel} {
  // CHECK: "gpu_tile.warp_reduce"
  // CHECK: -> tensor<2xf32, #gpu_tile.layout<"T(32,4):(0,1@0) V():()">>
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<130xf32, #gpu_tile.layout<"T(128):(4@0) V(4):(1@0)">>) -> tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
  return
}

// Rows lie in lanes and registers, and stay there.
// CHECK-LABEL: @two_values_per_row
func.func @two_values_per_row(%x: tensor<64x16xf32, #gpu_tile.layout<"T(32,4):(1@0,4@1) V(4,2):(1@1,32@0)">>, %i: tensor<64x16xi32, #gpu_tile.layout<"T(32,4):(1@0,4@1) V(4,2):(1@1,32@0)">>) attributes {tile.kernel} {
  // CHECK: "gpu_tile.warp_reduce"(%{{.*}}, %{{.*}}) ({
  // CHECK: -> (tensor<64x4xf32, #gpu_tile.layout<"T(32,4):(1@0,1@1) V(2):(32@0)">>, tensor<64x4xi32,
  // CHECK-COUNT-2: "gpu_tile.buffer_load"({{.*}} V(4,2):(1@1,32@0)">>
  %v, %at = "tile.reduce"(%x, %i) ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    %first = arith.cmpf ogt, %a, %c : f32
    %e = arith.select %first, %a, %c : f32
    %f = arith.select %first, %b, %d : i32
    gpu.yield %e, %f : f32, i32
  }) {axis = 1 : i32} : (tensor<64x16xf32, #gpu_tile.layout<"T(32,4):(1@0,4@1) V(4,2):(1@1,32@0)">>, tensor<64x16xi32, #gpu_tile.layout<"T(32,4):(1@0,4@1) V(4,2):(1@1,32@0)">>) -> (tensor<64xf32, #gpu_tile.layout<"T(32,4):(1@0,0) V(2):(32@0)">>, tensor<64xi32, #gpu_tile.layout<"T(32,4):(1@0,0) V(2):(32@0)">>)
  return
}

// Who wants the totals of 16 columns in 16 threads, one each, reads four partials of these, and
// nothing is converted.
// CHECK-LABEL: @totals_in_one_other_layout
func.func @totals_in_one_other_layout(%x: tensor<128x16xf32, #gpu_tile.layout<"T(4,32):(4@1,1@0) V(4,4):(1@1,32@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(16,8):(1@0,0) V():()">> attributes {tile.kernel} {
  // CHECK: "gpu_tile.buffer_load"({{.*}} -> tensor<4x16xf32, #gpu_tile.layout<"T(16,8):(1@1,0) V(4):(1@0)">>
  // CHECK: %[[Y:.*]] = "tile.reduce"
  // CHECK: -> tensor<16xf32, #gpu_tile.layout<"T(16,8):(1@0,0) V():()">>
  // CHECK-NOT: gpu_tile.convert_layout
  // CHECK: return %[[Y]]
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<128x16xf32, #gpu_tile.layout<"T(4,32):(4@1,1@0) V(4,4):(1@1,32@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(4,32):(4@0,0) V(4):(1@0)">>
  %c = "gpu_tile.convert_layout"(%y) : (tensor<16xf32, #gpu_tile.layout<"T(4,32):(4@0,0) V(4):(1@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(16,8):(1@0,0) V():()">>
  return %c : tensor<16xf32, #gpu_tile.layout<"T(16,8):(1@0,0) V():()">>
}

// Not where a thread would read more of them than it did.
// CHECK-LABEL: @totals_in_every_thread
func.func @totals_in_every_thread(%x: tensor<128x16xf32, #gpu_tile.layout<"T(4,32):(4@1,1@0) V(4,4):(1@1,32@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(128):(0) V(16):(1@0)">> attributes {tile.kernel} {
  // CHECK: "tile.reduce"
  // CHECK: gpu_tile.convert_layout
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<128x16xf32, #gpu_tile.layout<"T(4,32):(4@1,1@0) V(4,4):(1@1,32@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(4,32):(4@0,0) V(4):(1@0)">>
  %c = "gpu_tile.convert_layout"(%y) : (tensor<16xf32, #gpu_tile.layout<"T(4,32):(4@0,0) V(4):(1@0)">>) -> tensor<16xf32, #gpu_tile.layout<"T(128):(0) V(16):(1@0)">>
  return %c : tensor<16xf32, #gpu_tile.layout<"T(128):(0) V(16):(1@0)">>
}

// Partial results of four columns that a thread holds are read as vectors of these: neighbours in the buffer are columns,
// as each warp stores them.
// CHECK-LABEL: @columns
// CHECK: "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>
// CHECK: "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<8x64xf32, #gpu_tile.layout<"T(16,16):(4@1,0) V(4,8):(1@1,1@0)">>
func.func @columns(%x: tensor<32x64xf32, #gpu_tile.layout<"T(16,16):(4@1,2@0) V(4,2):(1@1,1@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(16,16):(4@0,0) V(4):(1@0)">> attributes {tile.kernel} {
  %y = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<32x64xf32, #gpu_tile.layout<"T(16,16):(4@1,2@0) V(4,2):(1@1,1@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(16,16):(4@0,0) V(4):(1@0)">>
  return %y : tensor<64xf32, #gpu_tile.layout<"T(16,16):(4@0,0) V(4):(1@0)">>
}
