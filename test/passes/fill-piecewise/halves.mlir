// One tile too many elements for a thread beside sums: it is loaded, converted and stored in halves.
// RUN: tilec opt %s --passes fill-piecewise --target sm_90a --num-warps 8 | filecheck %s

!m = memref<?x?xf8E4M3FN, strided<[?, 1]>>
!s = tensor<128x256xf32, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,32):(1@1,8@0,8@1)">>
!x = tensor<128x256xf8E4M3FN, #gpu_tile.layout<"T(256):(1@1) V(128):(1@0)">>
!w = tensor<128x256xf16, #gpu_tile.layout<"T(256):(1@1) V(128):(1@0)">>
!b = !gpu_tile.buffer<tensor<128x256xf16>, #gpu_tile.shared<"(128,256):(1,128)">>
!r = !gpu_tile.buffer<tensor<2x128x256xf16>, #gpu_tile.shared<"(128,256):(1,128)">>

// CHECK-LABEL: @converted
func.func @converted(%a: !m, %ring: !r, %slot: i32, %sums: !s, %k: index, %n: index) -> !s attributes {tile.kernel} {
  // CHECK: %[[SLOT:[^ ]*]] = "gpu_tile.slot"
  // CHECK: %[[X0:[^ ]*]] = "tile.load"(%arg0, %arg4, %arg5)
  // CHECK-SAME: tensor<64x256xf8E4M3FN, #gpu_tile.layout<"T(256):(1@1) V(64):(1@0)">>
  // CHECK: %[[ONE:[^ ]*]] = arith.constant dense<1.000000e+00> : tensor<64x256xf16
  // CHECK: %[[W0:[^ ]*]] = arith.extf %[[X0]]
  // CHECK: %[[P0:[^ ]*]] = arith.mulf %[[W0]], %[[ONE]]
  // CHECK: %[[V0:[^ ]*]] = "gpu_tile.view"(%[[SLOT]], %c0_i32{{.*}}, %c0_i32{{.*}} !gpu_tile.buffer<tensor<64x256xf16>
  // CHECK: "gpu_tile.buffer_store"(%[[P0]], %[[V0]])
  // CHECK: %[[BELOW:[^ ]*]] = arith.addi %arg4, %c64
  // CHECK: %[[X1:[^ ]*]] = "tile.load"(%arg0, %[[BELOW]], %arg5)
  // CHECK: %[[V1:[^ ]*]] = "gpu_tile.view"(%[[SLOT]], %c64_i32
  // CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[V1]])
  // CHECK-NOT: tile.load
  %x = "tile.load"(%a, %k, %n) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f8E4M3FN} : (!m, index, index) -> !x
  %one = arith.constant dense<1.0> : !w
  %w = arith.extf %x : !x to !w
  %p = arith.mulf %w, %one : !w
  %s = "gpu_tile.slot"(%ring, %slot) : (!r, i32) -> !b
  "gpu_tile.buffer_store"(%p, %s) : (!w, !b) -> ()
  return %sums : !s
}
