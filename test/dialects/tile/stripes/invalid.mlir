// Every rule of the ops in stripes.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @a_part_is_an_index() {
  // expected-error @below {{expected 'index' but got 'i32'}}
  %stripe = "tile.stripe_id"() : () -> i32
  return
}

// -----
func.func @so_is_one_of_more() {
  // expected-error @below {{expected 'index' but got 'i64'}}
  %part = "tile.part_id"() : () -> i64
  return
}

// -----
func.func @several_elements(%mine: tensor<2xf32>) {
  // expected-error @below {{'tile.gather_stripes' op value must be one element, found 2}}
  %all = "tile.gather_stripes"(%mine) : (tensor<2xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @no_row(%mine: tensor<f32>) {
  // expected-error @below {{'tile.gather_stripes' op result must be a row of f32, found tensor<2x4xf32>}}
  %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<2x4xf32>
  return
}

// -----
func.func @another_type(%mine: tensor<f32>) {
  // expected-error @below {{'tile.gather_stripes' op result must be a row of f32, found tensor<8xi32>}}
  %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<8xi32>
  return
}

// -----
func.func @fewer_sums(%mine: tensor<8x4xf32>) {
  // expected-error @below {{'tile.sum_stripes' op 2 values have 1 sums and 2 merges}}
  %sum = "tile.sum_stripes"(%mine, %mine) {axis = 0 : i32, merges = ["arith.addf", "arith.addf"]} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}

// -----
func.func @no_axis(%mine: tensor<8x4xf32>) {
  // expected-error @below {{'tile.sum_stripes' op axis 2 is out of range for rank 2}}
  %sum = "tile.sum_stripes"(%mine) {axis = 2 : i32, merges = ["arith.addf"]} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}

// -----
func.func @other_elements(%mine: tensor<8x4xf32>) {
  // expected-error @below {{'tile.sum_stripes' op sums of f32 are f16}}
  %sum = "tile.sum_stripes"(%mine) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<8x4xf32>) -> tensor<4x4xf16>
  return
}

// -----
func.func @no_stripe(%mine: tensor<8x4xf32>) {
  // expected-error @below {{'tile.sum_stripes' op 8x2 is no stripe of 8x4}}
  %sum = "tile.sum_stripes"(%mine) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @unknown(%mine: tensor<8x4xf32>) attributes {tile.kernel} {
  // expected-error @below {{'tile.sum_stripes' op no values merge by 'olt 1': expected e.g. 'arith.addf', 'olt 0'}}
  %sum = "tile.sum_stripes"(%mine) {axis = 0 : i32, merges = ["olt 1"]} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}
