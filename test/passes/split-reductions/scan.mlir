// A scan across warps: each block, the totals through a buffer, the carries.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

// CHECK-LABEL: @across_warps
func.func @across_warps(%x: tensor<1000xi32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>) attributes {tile.kernel} {
  // Eight blocks of 128: four warps, twice.
  // CHECK: %[[S:.*]]:2 = "gpu_tile.warp_scan"(%{{.*}}) ({
  // CHECK: reverse = true
  // CHECK-SAME: -> (tensor<1000xi32, {{.*}}>, tensor<8xi32, #gpu_tile.layout<"T(32,4):(0,1@0) V(2):(4@0)">>)
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[S]]#1, %[[B]])
  // CHECK: %[[T:.*]] = "gpu_tile.buffer_load"(%[[B]]) {{.*}} -> tensor<8xi32, #gpu_tile.layout<"T(128):(0) V(8):(1@0)">>
  // CHECK: "gpu_tile.scan_carry"(%[[S]]#0, %[[T]]) ({
  // CHECK: arith.addi
  // CHECK: reverse = true
  %y = "tile.scan"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32, reverse = true} : (tensor<1000xi32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>) -> tensor<1000xi32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
  return
}

// What a loop carries on is the sum of the totals, which threads have; another reduction has partial results of its own.
// CHECK-LABEL: @carried
// CHECK: "gpu_tile.warp_scan"
// CHECK: %[[T:.*]] = "gpu_tile.buffer_load"(%{{.*}}) {{.*}} -> tensor<4x8xi32, #gpu_tile.layout<"T(8,16):(1@1,0) V(4):(1@0)">>
// CHECK: "gpu_tile.scan_carry"
// CHECK: %[[SUM:.*]] = "tile.reduce"(%[[T]]) ({
// CHECK: arith.addi
// CHECK: "gpu_tile.warp_reduce"
// CHECK: arith.maxsi
// CHECK: %[[MOST:.*]] = "tile.reduce"
// CHECK: return %{{.*}}, %[[SUM]], %[[MOST]]
!x = tensor<16x8xi32, #gpu_tile.layout<"T(8,16):(1@1,1@0) V():()">>
!r = tensor<8xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V():()">>
func.func @carried(%x: !x) -> (!x, !r, !r) {
  %y = "tile.scan"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32, reverse = false} : (!x) -> !x
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!x) -> !r
  %most = "tile.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %r = arith.maxsi %p, %q : i32
    gpu.yield %r : i32
  }) {axis = 0 : i32} : (!x) -> !r
  return %y, %sum, %most : !x, !r, !r
}
