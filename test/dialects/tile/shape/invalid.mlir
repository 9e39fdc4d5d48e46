// Every rule of the ops that make, move or rename elements.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @iota_of_floats() {
  // expected-error @below {{'tile.iota' op elements must be integers, found f32}}
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<4xf32>
  return
}

// -----
func.func @iota_axis_out_of_range() {
  // expected-error @below {{'tile.iota' op axis 1 is out of range for rank 1}}
  %i = "tile.iota"() {axis = 1 : i32} : () -> tensor<4xi32>
  return
}

// -----
func.func @broadcast_dims_missing(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.broadcast' op 'dims' must name one result dimension per source dimension (2)}}
  %y = "tile.broadcast"(%x) {dims = array<i32: 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @broadcast_dims_twice_the_same(%x: tensor<4x4xf32>) {
  // expected-error @below {{'tile.broadcast' op 'dims' must be distinct result dimensions below 2, found [0, 0]}}
  %y = "tile.broadcast"(%x) {dims = array<i32: 0, 0>} : (tensor<4x4xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @broadcast_dim_out_of_range(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op 'dims' must be distinct result dimensions below 2, found [2]}}
  %y = "tile.broadcast"(%x) {dims = array<i32: 2>} : (tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @broadcast_size_does_not_fit(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op source dimension 0 of size 4 does not fit result size 8}}
  %y = "tile.broadcast"(%x) {dims = array<i32: 1>} : (tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @broadcast_to_another_element_type(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.broadcast' op element types differ: f32, f64}}
  %y = "tile.broadcast"(%x) {dims = array<i32: 0>} : (tensor<4xf32>) -> tensor<4x8xf64>
  return
}

// -----
func.func @reshape_to_more_elements(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.reshape' op element counts differ: 4x8 and 33}}
  %y = "tile.reshape"(%x) : (tensor<4x8xf32>) -> tensor<33xf32>
  return
}

// -----
func.func @reshape_to_another_element_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.reshape' op element types differ: f32, i32}}
  %y = "tile.reshape"(%x) : (tensor<4x8xf32>) -> tensor<32xi32>
  return
}

// -----
func.func @transpose_by_no_permutation(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.transpose' op [0, 0] is no permutation of 2 dimensions}}
  %y = "tile.transpose"(%x) {permutation = array<i32: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----
func.func @transpose_keeps_the_shape(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.transpose' op result must be 8x4, found 4x8}}
  %y = "tile.transpose"(%x) {permutation = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----
func.func @transpose_to_another_element_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.transpose' op element types differ: f32, f16}}
  %y = "tile.transpose"(%x) {permutation = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf16>
  return
}

// -----
func.func @transpose_permutation_is_a_list(%x: tensor<4x8xf32>) {
  // expected-error @below {{'tile.transpose' op attribute 'permutation' must be an array<i32: ...>, found [1, 0]}}
  %y = "tile.transpose"(%x) {permutation = [1, 0]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----
func.func @join_of_nothing() {
  // expected-error @below {{op expects at least 1 operands, but got 0}}
  %y = "tile.join"() {axis = 0 : i32} : () -> tensor<8xf32>
  return
}

// -----
func.func @join_axis_out_of_range(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.join' op axis 1 is out of range for rank 1}}
  %y = "tile.join"(%x, %x) {axis = 1 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @join_sizes_off_the_axis_differ(%x: tensor<4x8xf32>, %z: tensor<4x7xf32>) {
  // expected-error @below {{'tile.join' op sizes off the axis differ: 4x7 and 8x8}}
  %y = "tile.join"(%x, %z) {axis = 0 : i32} : (tensor<4x8xf32>, tensor<4x7xf32>) -> tensor<8x8xf32>
  return
}

// -----
func.func @join_element_types_differ(%x: tensor<4xf32>, %z: tensor<4xf64>) {
  // expected-error @below {{'tile.join' op element types differ: f64, f32}}
  %y = "tile.join"(%x, %z) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf64>) -> tensor<8xf32>
  return
}

// -----
func.func @join_sizes_do_not_add_up(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.join' op sizes along the axis add up to 8, result has 9}}
  %y = "tile.join"(%x, %x) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<9xf32>
  return
}

// -----
func.func @join_inputs_behind_the_first_differ(%x: tensor<4xf32>, %z: tensor<2xf32>) {
  // expected-error @below {{expected 'tensor<4xf32>' but got 'tensor<2xf32>'}}
  %y = "tile.join"(%x, %x, %z) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) -> tensor<10xf32>
  return
}

// -----
func.func @split_axis_out_of_range(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.split' op axis 2 is out of range for rank 1}}
  %a, %b = "tile.split"(%x) {axis = 2 : i32} : (tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----
func.func @split_in_unequal_parts(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.split' op size 8 does not split into 3 equal parts}}
  %a:3 = "tile.split"(%x) {axis = 0 : i32} : (tensor<8xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----
func.func @split_part_of_another_shape(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.split' op parts must be 4, found 5}}
  %a, %b = "tile.split"(%x) {axis = 0 : i32} : (tensor<8xf32>) -> (tensor<5xf32>, tensor<5xf32>)
  return
}

// -----
func.func @split_part_of_another_element_type(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.split' op element types differ: f32, f16}}
  %a, %b = "tile.split"(%x) {axis = 0 : i32} : (tensor<8xf32>) -> (tensor<4xf16>, tensor<4xf16>)
  return
}

// -----
func.func @split_in_parts_of_two_types(%x: tensor<8xf32>) {
  // expected-error @below {{expected 'tensor<5xf32>' but got 'tensor<3xf32>'}}
  %a, %b = "tile.split"(%x) {axis = 0 : i32} : (tensor<8xf32>) -> (tensor<5xf32>, tensor<3xf32>)
  return
}

// -----
func.func @take_axis_out_of_range(%x: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.take' op axis 1 is out of range for rank 1}}
  %y = "tile.take"(%x, %i) {axis = 1 : i32} : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @take_by_floats(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.take' op indices must be integers, found f32}}
  %y = "tile.take"(%x, %x) {axis = 0 : i32} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @take_result_shape_differs(%x: tensor<8xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{'tile.take' op result shape 8 differs from the indices' 4}}
  %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @take_shape_differs_off_the_axis(%x: tensor<8x4xf32>, %i: tensor<8x5xi32>) {
  // expected-error @below {{'tile.take' op indices 8x5 may differ from the source 8x4 only along axis 0}}
  %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8x4xf32>, tensor<8x5xi32>) -> tensor<8x5xf32>
  return
}

// -----
func.func @take_gives_another_element_type(%x: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.take' op element types differ: f32, f16}}
  %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf16>
  return
}

// -----
func.func @exchange_gives_another_type(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.exchange' op operand and result must have one type}}
  %y = "tile.exchange"(%x) {axis = 0 : i32, mask = 1 : i32} : (tensor<8xf32>) -> tensor<8xf16>
  return
}

// -----
func.func @exchange_along_no_axis(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.exchange' op axis 1 is out of range for rank 1}}
  %y = "tile.exchange"(%x) {axis = 1 : i32, mask = 1 : i32} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @exchange_with_oneself(%x: tensor<8xf32>) {
  // expected-error @below {{'tile.exchange' op 'mask' must be positive, found 0}}
  %y = "tile.exchange"(%x) {axis = 0 : i32, mask = 0 : i32} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @exchange_past_the_end(%x: tensor<12xf32>) {
  // expected-error @below {{'tile.exchange' op size 12 is no multiple of 8, whose elements mask 5 moves}}
  %y = "tile.exchange"(%x) {axis = 0 : i32, mask = 5 : i32} : (tensor<12xf32>) -> tensor<12xf32>
  return
}
