// Little is loaded in an iteration, and memory takes longer than it: eight rows come at a time, with the numbers that
// scale them. What is left of the rows comes one by one.
// RUN: tilec opt %s --passes load-ahead --target sm_90a --num-warps 4 | filecheck %s

!row = tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// CHECK-LABEL: @scaled
// CHECK: %[[FIRST:.*]]:16 = scf.if
// CHECK-COUNT-16: "tile.load"
// CHECK: } else {
// CHECK: %{{.*}}:17 = scf.for %[[I:.*]] = %c0 to %[[END:.*]] step %[[SPAN:.*]] iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[FIRST]]#0,
// CHECK: %[[AT:.*]] = arith.addi %[[I]], %[[SPAN]]
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[AT]], %[[END]]
// CHECK: scf.if %[[MORE]]
// CHECK-COUNT-16: "tile.load"
// CHECK: } else {
// CHECK-NOT: "tile.load"
// CHECK: "tile.reduce"
// CHECK-NOT: "tile.load"
// CHECK: "tile.reduce"
// CHECK-NOT: "tile.load"
// CHECK: scf.yield
// CHECK: %[[REST:.*]]:2 = scf.if
// CHECK-COUNT-2: "tile.load"
// CHECK: scf.for %{{.*}} = %[[END]] to
func.func @scaled(%x: memref<?x256xf32, strided<[256, 1]>>, %of: memref<?xf32, strided<[1]>>, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%most = %least) -> (f32) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (memref<?x256xf32, strided<[256, 1]>>, index, index) -> !row
    %scale = "tile.load"(%of, %i) {dims = array<i32>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !one
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %both = arith.mulf %s, %scale : !one
    %one = tensor.extract %both[] : !one
    %next = arith.maximumf %most, %one : f32
    scf.yield %next : f32
  }
  return %r : f32
}
