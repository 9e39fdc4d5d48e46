// The ops about the program itself, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @grid
func.func @grid() -> (index, index) {
  // CHECK: "tile.program_id"() {axis = 2 : i32} : () -> index
  %i = "tile.program_id"() {axis = 2 : i32} : () -> index
  // CHECK: "tile.num_programs"() {axis = 0 : i32} : () -> index
  %n = "tile.num_programs"() {axis = 0 : i32} : () -> index
  return %i, %n : index, index
}

// CHECK-LABEL: @assume_of_index_and_i32
func.func @assume_of_index_and_i32(%n: index, %m: i32) {
  // CHECK: "tile.assume"(%{{.*}}) {facts = {max = 4096 : i32, min = 1 : i32, multiple_of = 16 : i32}} : (index) -> ()
  "tile.assume"(%n) {facts = {min = 1 : i32, max = 4096 : i32, multiple_of = 16 : i32}} : (index) -> ()
  // CHECK: "tile.assume"(%{{.*}}) {facts = {}} : (i32) -> ()
  "tile.assume"(%m) {facts = {}} : (i32) -> ()
  return
}

// CHECK-LABEL: @assert_of_scalar_and_tile
func.func @assert_of_scalar_and_tile(%b: i1, %t: tensor<128xi1>) {
  // CHECK: "tile.assert"(%{{.*}}) {message = "n is even"} : (i1) -> ()
  "tile.assert"(%b) {message = "n is even"} : (i1) -> ()
  // CHECK: "tile.assert"(%{{.*}}) {message = ""} : (tensor<128xi1>) -> ()
  "tile.assert"(%t) {message = ""} : (tensor<128xi1>) -> ()
  return
}

// CHECK-LABEL: @print_of_nothing_scalars_and_tiles
func.func @print_of_nothing_scalars_and_tiles(%x: f32, %t: tensor<4xi32>) {
  // CHECK: "tile.print"() {format = "here", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  "tile.print"() {format = "here", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  // CHECK: "tile.print"(%{{.*}}, %{{.*}}, %{{.*}}) {format = "{} {} {}", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>} : (f32, tensor<4xi32>, tensor<4xi32>) -> ()
  "tile.print"(%x, %t, %t) {format = "{} {} {}", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>} : (f32, tensor<4xi32>, tensor<4xi32>) -> ()
  return
}

// CHECK-LABEL: @inline_ptx_with_several_results
func.func @inline_ptx_with_several_results(%x: tensor<8xf32>, %s: i32) -> (tensor<8xf32>, tensor<8xi32>) {
  // CHECK: "tile.inline_ptx"(%{{.*}}, %{{.*}}) {constraints = "=f,=r,f,r", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, pure = false, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, text = "mov.f32 $0, $2; mov.b32 $1, $3;"} : (tensor<8xf32>, i32) -> (tensor<8xf32>, tensor<8xi32>)
  %y, %z = "tile.inline_ptx"(%x, %s) {text = "mov.f32 $0, $2; mov.b32 $1, $3;", constraints = "=f,=r,f,r", pure = false, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>, i32) -> (tensor<8xf32>, tensor<8xi32>)
  // CHECK: "tile.inline_ptx"() {constraints = "", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, pure = false, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>, text = "membar.gl;"} : () -> ()
  "tile.inline_ptx"() {text = "membar.gl;", constraints = "", pure = false, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  return %y, %z : tensor<8xf32>, tensor<8xi32>
}
