// Stripes of programs, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @stripes
func.func @stripes(%mine: tensor<f32>) {
  // CHECK: "tile.stripe_id"() : () -> index
  %stripe = "tile.stripe_id"() : () -> index
  // CHECK: "tile.gather_stripes"(%{{.*}}) : (tensor<f32>) -> tensor<8xf32>
  %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<8xf32>
  return
}
