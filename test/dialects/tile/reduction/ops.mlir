// Reductions and scans of one and of several values, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @maximum_of_rows
func.func @maximum_of_rows(%x: tensor<64x100xf32>) -> tensor<64xf32> {
  // CHECK: "tile.reduce"(%{{.*}}) ({
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32):
  // CHECK-NEXT: arith.maximumf %[[P]], %[[Q]] : f32
  // CHECK-NEXT: gpu.yield %{{.*}} : f32
  // CHECK-NEXT: }) {axis = 1 : i32} : (tensor<64x100xf32>) -> tensor<64xf32>
  %m = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<64x100xf32>) -> tensor<64xf32>
  return %m : tensor<64xf32>
}

// CHECK-LABEL: @position_of_the_maximum_of_a_vector
func.func @position_of_the_maximum_of_a_vector(%x: tensor<100xf32>, %i: tensor<100xi32>) -> tensor<i32> {
  // CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: f32, %{{.*}}: i32):
  // CHECK: {axis = 0 : i32} : (tensor<100xf32>, tensor<100xi32>) -> (tensor<f32>, tensor<i32>)
  %m, %at = "tile.reduce"(%x, %i) ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %r = arith.select %c, %a, %b : f32
    %ri = arith.select %c, %ai, %bi : i32
    gpu.yield %r, %ri : f32, i32
  }) {axis = 0 : i32} : (tensor<100xf32>, tensor<100xi32>) -> (tensor<f32>, tensor<i32>)
  return %at : tensor<i32>
}

// CHECK-LABEL: @running_sum_from_the_end
func.func @running_sum_from_the_end(%x: tensor<3x128xi64>) -> tensor<3x128xi64> {
  // CHECK: }) {axis = 1 : i32, reverse = true} : (tensor<3x128xi64>) -> tensor<3x128xi64>
  %s = "tile.scan"(%x) ({
  ^bb0(%p: i64, %q: i64):
    %r = arith.addi %p, %q : i64
    gpu.yield %r : i64
  }) {axis = 1 : i32, reverse = true} : (tensor<3x128xi64>) -> tensor<3x128xi64>
  return %s : tensor<3x128xi64>
}

// CHECK-LABEL: @counts_of_a_matrix
func.func @counts_of_a_matrix(%v: tensor<64x37xi16>, %ok: tensor<64x37xi1>) -> tensor<100xi32> {
  // CHECK: "tile.histogram"(%{{.*}}, %{{.*}}) : (tensor<64x37xi16>, tensor<64x37xi1>) -> tensor<100xi32>
  %h = "tile.histogram"(%v, %ok) : (tensor<64x37xi16>, tensor<64x37xi1>) -> tensor<100xi32>
  return %h : tensor<100xi32>
}
