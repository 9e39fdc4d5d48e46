// Every rule of the ops about the program itself.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @program_id_axis_too_large() {
  // expected-error @below {{'tile.program_id' op axis must be 0, 1 or 2, found 3}}
  %i = "tile.program_id"() {axis = 3 : i32} : () -> index
  return
}

// -----
func.func @program_id_gives_i32() {
  // expected-error @below {{expected 'index' but got 'i32'}}
  %i = "tile.program_id"() {axis = 0 : i32} : () -> i32
  return
}

// -----
func.func @num_programs_axis_negative() {
  // expected-error @below {{'tile.num_programs' op axis must be 0, 1 or 2, found -1}}
  %n = "tile.num_programs"() {axis = -1 : i32} : () -> index
  return
}

// -----
func.func @num_programs_without_axis() {
  // expected-error @below {{'tile.num_programs' op attribute "axis" is expected but not provided}}
  %n = "tile.num_programs"() : () -> index
  return
}

// -----
func.func @assume_of_a_tile(%t: tensor<4xi32>) {
  // expected-error @below {{'tile.assume' op value must be a scalar integer, found tensor<4xi32>}}
  "tile.assume"(%t) {facts = {}} : (tensor<4xi32>) -> ()
  return
}

// -----
func.func @assume_of_a_float(%x: f32) {
  // expected-error @below {{'tile.assume' op value must be a scalar integer, found f32}}
  "tile.assume"(%x) {facts = {}} : (f32) -> ()
  return
}

// -----
func.func @assume_multiple_of_zero(%n: index) {
  // expected-error @below {{'tile.assume' op multiple_of must be positive, found 0}}
  "tile.assume"(%n) {facts = {multiple_of = 0 : i32}} : (index) -> ()
  return
}

// -----
func.func @assume_min_above_max(%n: index) {
  // expected-error @below {{'tile.assume' op contradictory facts: min 9 is above max 8}}
  "tile.assume"(%n) {facts = {min = 9 : i32, max = 8 : i32}} : (index) -> ()
  return
}

// -----
func.func @assume_unknown_fact(%n: index) {
  // expected-error @below {{'tile.assume' op attribute 'facts' has the unknown option 'odd'; known: max, min, multiple_of}}
  "tile.assume"(%n) {facts = {odd = true}} : (index) -> ()
  return
}

// -----
func.func @assert_of_i32(%n: i32) {
  // expected-error @below {{'tile.assert' op condition must be i1 or a tile of i1, found i32}}
  "tile.assert"(%n) {message = "x"} : (i32) -> ()
  return
}

// -----
func.func @assert_of_i8_tile(%t: tensor<4xi8>) {
  // expected-error @below {{'tile.assert' op condition must be i1 or a tile of i1, found tensor<4xi8>}}
  "tile.assert"(%t) {message = "x"} : (tensor<4xi8>) -> ()
  return
}

// -----
func.func @print_named_placeholder(%x: f32) {
  // expected-error @below {{'tile.print' op format placeholders must be empty braces '{}', or '{u}'}}
  "tile.print"(%x) {format = "x = {x}", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  return
}

// -----
func.func @a_float_without_sign(%x: f32) {
  // expected-error @below {{'tile.print' op placeholder 'u' is for integers, found f32}}
  "tile.print"(%x) {format = "x = {u}", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  return
}

// -----
func.func @print_without_placeholder(%x: f32) {
  // expected-error @below {{'tile.print' op format has 0 placeholders for 1 values}}
  "tile.print"(%x) {format = "x", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  return
}

// -----
func.func @print_tiles_of_two_shapes(%t: tensor<4xf32>, %u: tensor<8xf32>) {
  // expected-error @below {{'tile.print' op all printed tiles must have one shape}}
  "tile.print"(%t, %u) {format = "{} {}", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<8xf32>) -> ()
  return
}

// -----
func.func @inline_ptx_result_without_constraint(%x: f32) {
  // expected-error @below {{'tile.inline_ptx' op 1 results need as many leading '=' constraints}}
  %y = "tile.inline_ptx"(%x) {text = "", constraints = "f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> f32
  return
}

// -----
func.func @inline_ptx_output_constraint_behind_an_input(%x: f32) {
  // expected-error @below {{'tile.inline_ptx' op 1 results need as many leading '=' constraints}}
  %y = "tile.inline_ptx"(%x) {text = "", constraints = "f,=f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> f32
  return
}

// -----
func.func @inline_ptx_input_without_constraint(%x: f32) {
  // expected-error @below {{'tile.inline_ptx' op 1 inputs but 0 input constraints}}
  %y = "tile.inline_ptx"(%x) {text = "", constraints = "=f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> f32
  return
}

// -----
func.func @inline_ptx_unknown_letter(%x: f32) {
  // expected-error @below {{'tile.inline_ptx' op unknown constraint 'x'; use h, r, l, f or d}}
  %y = "tile.inline_ptx"(%x) {text = "", constraints = "=f,x", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> f32
  return
}

// -----
func.func @inline_ptx_tiles_of_two_shapes(%t: tensor<4xf32>) {
  // expected-error @below {{'tile.inline_ptx' op all tiles must have one shape}}
  %y = "tile.inline_ptx"(%t) {text = "", constraints = "=f,f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<8xf32>
  return
}
