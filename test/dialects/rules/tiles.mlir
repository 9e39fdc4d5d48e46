// What holds for tiles and attributes of every op.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @tile_of_dynamic_shape(%x: tensor<?xf32>) {
  // expected-error @below {{'tile.reshape' op tiles must have a static shape, found tensor<?xf32>}}
  %y = "tile.reshape"(%x) : (tensor<?xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @tile_without_elements(%x: tensor<4x0xf32>) {
  // expected-error @below {{'tile.reshape' op tiles must not be empty, found tensor<4x0xf32>}}
  %y = "tile.reshape"(%x) : (tensor<4x0xf32>) -> tensor<0xf32>
  return
}

// -----
func.func @tile_too_large() {
  // expected-error @below {{'tile.iota' op tiles have at most 1048576 elements, found tensor<1048577xi32>}}
  %y = "tile.iota"() {axis = 0 : i32} : () -> tensor<1048577xi32>
  return
}

// -----
func.func @every_wrong_op_is_reported() {
  // expected-error @below {{axis must be 0, 1 or 2, found 3}}
  %i = "tile.program_id"() {axis = 3 : i32} : () -> index
  // expected-error @below {{axis must be 0, 1 or 2, found 4}}
  %j = "tile.program_id"() {axis = 4 : i32} : () -> index
  return
}

// -----
func.func @attribute_of_another_kind(%x: tensor<4xf32>, %n: index) {
  // expected-error @below {{'tile.program_id' op attribute 'axis' must be an i32 integer, found 0 : i64}}
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  // expected-error @below {{'tile.print' op attribute 'format' must be a string, found 3 : i32}}
  "tile.print"(%n) {format = 3 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (index) -> ()
  // expected-error @below {{'tile.assume' op attribute 'facts' must be a dictionary, found unit}}
  "tile.assume"(%n) {facts} : (index) -> ()
  return
}

// -----
func.func @op_that_does_not_exist(%x: tensor<4xf32>) {
  // expected-error @below {{unregistered operation 'tile.mutmul' found in dialect ('tile') that does not allow unknown operations}}
  "tile.mutmul"(%x) : (tensor<4xf32>) -> ()
  return
}

// -----
func.func @op_without_quotes(%x: tensor<4xf32>) {
  // expected-error @below {{'tile.reshape' has no short form; write it in MLIR's generic form}}
  %y = tile.reshape %x : tensor<4xf32> to tensor<2x2xf32>
  return
}
