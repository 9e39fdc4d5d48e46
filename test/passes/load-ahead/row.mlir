// A loop over a row that needs the maximum of each block: the next block is loaded first.
// RUN: tilec opt %s --passes load-ahead --target sm_90a | filecheck %s

!row = tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
!one = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

// CHECK-LABEL: @highest
func.func @highest(%x: memref<?xf32, strided<[1]>>, %n: index, %least: f32) -> f32 attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  // CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER:.*]], %[[UPPER:.*]] : index
  // CHECK: %[[FIRST:.*]] = scf.if %[[ANY]]
  // CHECK: "tile.load"(%{{.*}}, %[[LOWER]])
  // CHECK: scf.for %[[I:.*]] = %[[LOWER]] to %[[UPPER]] step %[[STEP:.*]] iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %[[FIRST]])
  %r = scf.for %i = %c0 to %n step %c1024 iter_args(%most = %least) -> (f32) {
    // CHECK: %[[AT:.*]] = arith.addi %[[I]], %[[STEP]]
    // CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[AT]], %[[UPPER]]
    // CHECK: %[[NEXT:.*]] = scf.if %[[MORE]]
    // CHECK: "tile.load"(%{{.*}}, %[[AT]])
    // CHECK: } else {
    // CHECK: scf.yield %[[V]]
    // CHECK-NOT: tile.load
    // CHECK: "tile.reduce"(%[[V]])
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> !row
    %s = "tile.reduce"(%v) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.maximumf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!row) -> !one
    %one = tensor.extract %s[] : !one
    %next = arith.maximumf %most, %one : f32
    // CHECK: scf.yield %{{.*}}, %[[NEXT]]
    scf.yield %next : f32
  }
  return %r : f32
}
