// Sums of weights' products are scaled by warps whose running maximum grew; where it is any other
// factor, or what is scaled is no product's, all scale.
// RUN: tilec opt %s --passes skip-scaling --target sm_90a --num-warps 4 | filecheck %s

#acc = #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">
#row = #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">
!s = tensor<64x64xf32, #acc>
!r = tensor<64xf32, #row>
!p = !gpu_tile.pending<!s>

// CHECK-LABEL: @maximum
// CHECK: %[[ROWS:.*]] = "tile.broadcast"
// CHECK: %[[SUM:.*]] = "gpu_tile.wgmma_wait"
// CHECK-NEXT: "gpu_tile.scale"(%[[SUM]], %[[ROWS]])
// CHECK-NOT: arith.mulf
func.func @maximum(%pending: !p, %most: !r, %high: !r) -> !s attributes {tile.kernel} {
  %more = arith.maximumf %most, %high : !r
  %less = arith.subf %most, %more : !r
  %shrink = math.exp2 %less : !r
  %rows = "tile.broadcast"(%shrink) {dims = array<i32: 0>} : (!r) -> !s
  %sum = "gpu_tile.wgmma_wait"(%pending) {pending = 0 : i32} : (!p) -> !s
  %scaled = arith.mulf %rows, %sum : !s
  return %scaled : !s
}

// CHECK-LABEL: @chosen
// CHECK: "gpu_tile.scale"
// CHECK-NEXT: "gpu_tile.wgmma_fence"
func.func @chosen(%sum: !s, %most: !r, %high: !r, %is: tensor<64xi1, #row>) -> !p attributes {tile.kernel} {
  %more = arith.select %is, %high, %most : tensor<64xi1, #row>, !r
  %less = arith.subf %most, %more : !r
  %shrink = math.exp %less : !r
  %rows = "tile.broadcast"(%shrink) {dims = array<i32: 0>} : (!r) -> !s
  %scaled = arith.mulf %sum, %rows : !s
  %fence = "gpu_tile.wgmma_fence"(%scaled) : (!s) -> !p
  return %fence : !p
}

// CHECK-LABEL: @others
// CHECK-NOT: gpu_tile.scale
func.func @others(%pending: !p, %tile: !s, %most: !r, %high: !r) -> (!s, !s) attributes {tile.kernel} {
  %less = arith.subf %most, %high : !r
  %decay = math.exp2 %less : !r
  %rows = "tile.broadcast"(%decay) {dims = array<i32: 0>} : (!r) -> !s
  %sum = "gpu_tile.wgmma_wait"(%pending) {pending = 0 : i32} : (!p) -> !s
  %scaled = arith.mulf %sum, %rows : !s
  %more = arith.maximumf %most, %high : !r
  %of = arith.subf %most, %more : !r
  %shrink = math.exp2 %of : !r
  %factors = "tile.broadcast"(%shrink) {dims = array<i32: 0>} : (!r) -> !s
  %both = arith.mulf %tile, %factors : !s
  return %scaled, %both : !s, !s
}
