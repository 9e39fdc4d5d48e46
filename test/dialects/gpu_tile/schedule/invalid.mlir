// Every rule of the ops in schedule.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @empty_group(%l: i32) {
  // expected-error @below {{'gpu_tile.tile_order' op group must be positive, found 0}}
  %m, %n = "gpu_tile.tile_order"(%l, %l, %l) {order = "grouped", group = 0 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}

// -----
func.func @unknown_order(%l: i32) {
  // expected-error @below {{'gpu_tile.tile_order' op attribute 'order' must be one of 'grouped', 'rows', 'hilbert', found "spiral"}}
  %m, %n = "gpu_tile.tile_order"(%l, %l, %l) {order = "spiral", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}

// -----
func.func @counts_are_i32(%l: index) {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %m, %n = "gpu_tile.tile_order"(%l, %l, %l) {order = "rows", group = 8 : i32} : (index, index, index) -> (i32, i32)
  return
}

// -----
func.func @a_cta_is_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %first = "gpu_tile.cta_id"() : () -> index
  return
}

// -----
func.func @ctas_are_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %step = "gpu_tile.num_ctas"() : () -> index
  return
}

// -----
func.func @unknown_kind() {
  // expected-error @below {{'gpu_tile.griddepcontrol' op attribute 'kind' must be one of 'wait', 'launch_dependents', found "start"}}
  "gpu_tile.griddepcontrol"() {kind = "start"} : () -> ()
  return
}

// -----
func.func @no_square(%l: i32) {
  // expected-error @below {{'gpu_tile.tile_order' op group must be a power of two for 'hilbert', found 12}}
  %m, %n = "gpu_tile.tile_order"(%l, %l, %l) {order = "hilbert", group = 12 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}

// -----
func.func @its_program_is_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %mine = "gpu_tile.program_in_cta"() : () -> index
  return
}

// -----
func.func @programs_are_an_i32() {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %warps = "gpu_tile.programs_in_cta"() : () -> index
  return
}
