// Stripes of programs, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @stripes
func.func @stripes(%mine: tensor<f32>, %tile: tensor<8x4xf32>) {
  // CHECK: "tile.stripe_id"() : () -> index
  %stripe = "tile.stripe_id"() : () -> index
  // CHECK: "tile.part_id"() : () -> index
  %part = "tile.part_id"() : () -> index
  // CHECK: "tile.gather_stripes"(%{{.*}}) : (tensor<f32>) -> tensor<8xf32>
  %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<8xf32>
  // CHECK: "tile.sum_stripes"(%{{.*}}) {axis = 1 : i32, merges = ["arith.addf"]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
  %sum = "tile.sum_stripes"(%tile) {axis = 1 : i32, merges = ["arith.addf"]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return
}
