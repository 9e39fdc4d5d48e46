// Every rule of the ops in stripes.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @a_part_is_an_index() {
  // expected-error @below {{expected 'index' but got 'i32'}}
  %stripe = "tile.stripe_id"() : () -> i32
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
