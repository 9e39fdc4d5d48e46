// Every rule of reductions and scans.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @reduce_of_nothing() {
  // expected-error @below {{op expects at least 1 operands, but got 0}}
  "tile.reduce"() ({
    gpu.yield
  }) {axis = 0 : i32} : () -> ()
  return
}

// -----
func.func @reduce_input_shapes_differ(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{'tile.reduce' op input shapes differ: 4, 8}}
  %r:2 = "tile.reduce"(%x, %y) ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    gpu.yield %a, %b : f32, f32
  }) {axis = 0 : i32} : (tensor<4xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----
func.func @reduce_axis_out_of_range(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op axis 1 is out of range for rank 1}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----
func.func @reduce_of_a_scalar_tile(%x: tensor<f32>) {
  // expected-error @below {{'tile.reduce' op axis 0 is out of range for rank 0}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (tensor<f32>) -> tensor<f32>
  return
}

// -----
func.func @reduce_region_takes_other_types(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op region must take f32, f32}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f64):
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----
func.func @reduce_region_yields_too_much(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op region must yield f32}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a, %b : f32, f32
  }) {axis = 0 : i32} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----
func.func @reduce_result_keeps_the_axis(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.reduce' op result must be 4 of f32, found tensor<4x8xf32>}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @reduce_result_has_another_element(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.reduce' op result must be 4 of f32, found tensor<4xf64>}}
  %r = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4xf64>
  return
}

// -----
func.func @reduce_result_missing(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{'tile.reduce' op 2 inputs but 1 results}}
  %r = "tile.reduce"(%x, %y) ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    gpu.yield %a, %b : f32, f32
  }) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----
func.func @scan_result_has_another_type(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.scan' op results must have the inputs' types}}
  %r = "tile.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @scan_axis_negative(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.scan' op axis -1 is out of range for rank 1}}
  %r = "tile.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = -1 : i32, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @scan_reverse_is_a_number(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.scan' op attribute 'reverse' must be a boolean, found 3 : i32}}
  %r = "tile.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @histogram_of_floats(%v: tensor<8xf32>, %ok: tensor<8xi1>) {
  // expected-error @below {{'tile.histogram' op values must be i8, i16, i32 or i64, found f32}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xf32>, tensor<8xi1>) -> tensor<4xi32>
  return
}

// -----
func.func @histogram_of_flags(%v: tensor<8xi1>, %ok: tensor<8xi1>) {
  // expected-error @below {{'tile.histogram' op values must be i8, i16, i32 or i64, found i1}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xi1>, tensor<8xi1>) -> tensor<4xi32>
  return
}

// -----
func.func @histogram_mask_of_numbers(%v: tensor<8xi32>, %ok: tensor<8xi8>) {
  // expected-error @below {{'tile.histogram' op mask must be i1, found i8}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xi32>, tensor<8xi8>) -> tensor<4xi32>
  return
}

// -----
func.func @histogram_mask_of_another_shape(%v: tensor<8xi32>, %ok: tensor<9xi1>) {
  // expected-error @below {{'tile.histogram' op mask is 9, values 8}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xi32>, tensor<9xi1>) -> tensor<4xi32>
  return
}

// -----
func.func @histogram_in_two_dimensions(%v: tensor<8xi32>, %ok: tensor<8xi1>) {
  // expected-error @below {{'tile.histogram' op result must have one dimension, of i32, found tensor<4x4xi32>}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xi32>, tensor<8xi1>) -> tensor<4x4xi32>
  return
}

// -----
func.func @histogram_in_i64(%v: tensor<8xi32>, %ok: tensor<8xi1>) {
  // expected-error @below {{'tile.histogram' op result must have one dimension, of i32, found tensor<4xi64>}}
  %h = "tile.histogram"(%v, %ok) : (tensor<8xi32>, tensor<8xi1>) -> tensor<4xi64>
  return
}
