// Sums of a tile that registers do not hold: a loop over stripes of its rows adds them up.
// RUN: tilec opt %s --passes sum-in-steps --target sm_90a --num-warps 32 | filecheck %s

// CHECK-LABEL: @two_sums
func.func @two_sums(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>, %row: index, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  // CHECK-NOT: tensor<64x4096
  // CHECK: %[[ACC:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %[[N:.*]] step %{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[T:.*]] = %{{.*}}) -> (tensor<8192xf32>, tensor<2x4096xf32>)
  // CHECK: %[[FIRST:.*]] = arith.muli %[[I]]
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[FIRST]]
  // CHECK: %[[X:.*]] = "tile.load"(%{{.*}}, %[[AT]], %{{.*}}) {{.*}} -> tensor<2x4096xf32>
  // CHECK: %[[Z:.*]] = "tile.load"({{.*}} -> tensor<2x4096xf32>
  // CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[Z]]
  // CHECK: %[[F:.*]] = "tile.reshape"(%[[P]]) : (tensor<2x4096xf32>) -> tensor<8192xf32>
  // CHECK: arith.addf %[[S]], %[[F]]
  // CHECK: arith.addf %[[T]], %[[X]]
  // CHECK: "tile.reduce"(%[[ACC]]#0)
  // CHECK: "tile.store"
  // CHECK: "tile.reduce"(%[[ACC]]#1)
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<64x4096xf32>
  %z = "tile.load"(%b, %row, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<64x4096xf32>
  %p = arith.mulf %x, %z : tensor<64x4096xf32>
  %flat = "tile.reshape"(%p) : (tensor<64x4096xf32>) -> tensor<262144xf32>
  %s = "tile.reduce"(%flat) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.addf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (tensor<262144xf32>) -> tensor<f32>
  "tile.store"(%s, %y, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, memref<?xf32, strided<[1]>>, index) -> ()
  %columns = "tile.reduce"(%x) ({
  ^bb0(%q: f32, %r: f32):
    %t = arith.addf %q, %r : f32
    gpu.yield %t : f32
  }) {axis = 0 : i32} : (tensor<64x4096xf32>) -> tensor<4096xf32>
  "tile.store"(%columns, %y, %c0) {dims = array<i32: 0>, options = {}} : (tensor<4096xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
