// Ops that make, move or rename elements, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @iota
func.func @iota() -> (tensor<3x5xi64>, tensor<7xindex>) {
  // CHECK: "tile.iota"() {axis = 1 : i32} : () -> tensor<3x5xi64>
  %i = "tile.iota"() {axis = 1 : i32} : () -> tensor<3x5xi64>
  // CHECK: -> tensor<7xindex>
  %j = "tile.iota"() {axis = 0 : i32} : () -> tensor<7xindex>
  return %i, %j : tensor<3x5xi64>, tensor<7xindex>
}

// CHECK-LABEL: @broadcast_scalar_row_and_one
func.func @broadcast_scalar_row_and_one(%s: tensor<f32>, %r: tensor<64xf32>, %o: tensor<1x5xf32>) {
  // CHECK: "tile.broadcast"(%{{.*}}) {dims = array<i32>} : (tensor<f32>) -> tensor<4xf32>
  %a = "tile.broadcast"(%s) {dims = array<i32>} : (tensor<f32>) -> tensor<4xf32>
  // CHECK: {dims = array<i32: 0>} : (tensor<64xf32>) -> tensor<64x128xf32>
  %b = "tile.broadcast"(%r) {dims = array<i32: 0>} : (tensor<64xf32>) -> tensor<64x128xf32>
  // CHECK: {dims = array<i32: 2, 0>} : (tensor<1x5xf32>) -> tensor<5x3x7xf32>
  %c = "tile.broadcast"(%o) {dims = array<i32: 2, 0>} : (tensor<1x5xf32>) -> tensor<5x3x7xf32>
  return
}

// CHECK-LABEL: @reshape_and_transpose
func.func @reshape_and_transpose(%x: tensor<4x6x5xbf16>) {
  // CHECK: "tile.reshape"(%{{.*}}) : (tensor<4x6x5xbf16>) -> tensor<8x15xbf16>
  %r = "tile.reshape"(%x) : (tensor<4x6x5xbf16>) -> tensor<8x15xbf16>
  // CHECK: "tile.transpose"(%{{.*}}) {permutation = array<i32: 2, 0, 1>} : (tensor<4x6x5xbf16>) -> tensor<5x4x6xbf16>
  %t = "tile.transpose"(%x) {permutation = array<i32: 2, 0, 1>} : (tensor<4x6x5xbf16>) -> tensor<5x4x6xbf16>
  return
}

// CHECK-LABEL: @join_and_split
func.func @join_and_split(%a: tensor<4x8xi8>, %b: tensor<2x8xi8>) {
  // CHECK: "tile.join"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i32} : (tensor<2x8xi8>, tensor<4x8xi8>, tensor<4x8xi8>) -> tensor<10x8xi8>
  %j = "tile.join"(%b, %a, %a) {axis = 0 : i32} : (tensor<2x8xi8>, tensor<4x8xi8>, tensor<4x8xi8>) -> tensor<10x8xi8>
  // CHECK: "tile.split"(%{{.*}}) {axis = 1 : i32} : (tensor<10x8xi8>) -> (tensor<10x4xi8>, tensor<10x4xi8>)
  %s:2 = "tile.split"(%j) {axis = 1 : i32} : (tensor<10x8xi8>) -> (tensor<10x4xi8>, tensor<10x4xi8>)
  return
}

// CHECK-LABEL: @take
func.func @take(%x: tensor<8x4xf16>, %i: tensor<3x4xi64>) -> tensor<3x4xf16> {
  // CHECK: "tile.take"(%{{.*}}, %{{.*}}) {axis = 0 : i32} : (tensor<8x4xf16>, tensor<3x4xi64>) -> tensor<3x4xf16>
  %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8x4xf16>, tensor<3x4xi64>) -> tensor<3x4xf16>
  return %y : tensor<3x4xf16>
}

// CHECK-LABEL: @exchange
func.func @exchange(%x: tensor<3x24xf16>) -> tensor<3x24xf16> {
  // CHECK: "tile.exchange"(%{{.*}}) {axis = 1 : i32, mask = 5 : i32} : (tensor<3x24xf16>) -> tensor<3x24xf16>
  %y = "tile.exchange"(%x) {axis = 1 : i32, mask = 5 : i32} : (tensor<3x24xf16>) -> tensor<3x24xf16>
  return %y : tensor<3x24xf16>
}
