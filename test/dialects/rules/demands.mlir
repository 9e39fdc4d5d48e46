// Demands in forms that there are not, and where nobody reads them.
// RUN: tilec opt %s --passes simplify --target sm_80 --split-input-file --verify-diagnostics

// expected-error @below {{tile.num_warps must be a number from 1 to 32, found "4"}}
func.func @a_word() attributes {tile.kernel, tile.num_warps = "4"} { return }

// -----
// expected-error @below {{tile.num_warps must be a number from 1 to 32, found 33 : i32}}
func.func @too_many() attributes {tile.kernel, tile.num_warps = 33 : i32} { return }

// -----
// expected-error @below {{tile.persistent must be True, False or "dynamic", found "yes"}}
func.func @yes() attributes {tile.kernel, tile.persistent = "yes"} { return }

// -----
// expected-error @below {{tile.cluster must be a number of programs, or one for each axis of the grid, found 2 : i32}}
func.func @no_box() attributes {tile.kernel, tile.cluster = 2 : i32} { return }

// -----
// expected-error @below {{tile.cluster must be a number of programs, or one for each axis of the grid, found array<i32: 1, 1, 1, 1>}}
func.func @four_axes() attributes {tile.kernel, tile.cluster = array<i32: 1, 1, 1, 1>} { return }

// -----
// expected-error @below {{tile.cluster must be a number of programs, or one for each axis of the grid, found array<i32: 0>}}
func.func @nobody() attributes {tile.kernel, tile.cluster = array<i32: 0>} { return }

// -----
// expected-error @below {{tile.consumers must be "cooperative" or "pingpong", found "alone"}}
func.func @alone() attributes {tile.kernel, tile.consumers = "alone"} { return }

// -----
// expected-error @below {{tile.consumers must be "cooperative" or "pingpong", found true}}
func.func @true() attributes {tile.kernel, tile.consumers = true} { return }

// -----
// expected-error @below {{tile.order must be "grouped", "rows" or "hilbert", or that and}}
func.func @columns() attributes {tile.kernel, tile.order = "columns"} { return }

// -----
// expected-error @below {{a power of two, found ["hilbert", 12 : i32]}}
func.func @twelve() attributes {tile.kernel, tile.order = ["hilbert", 12 : i32]} { return }

// -----
// expected-error @below {{a power of two, found {name = "rows"}}}
func.func @not_in_a_list() attributes {tile.kernel, tile.order = {name = "rows"}} { return }

// -----
// expected-error @below {{'func.func' has the unknown demand 'tile.stages'; known: tile.auto, tile.cluster,}}
func.func @of_a_loop() attributes {tile.kernel, tile.stages = 4 : i32} { return }

// -----
func.func @none(%n: index) attributes {tile.kernel} {
  // expected-error @below {{tile.stages must be a constant from 1 to 64, found 0 : i32}}
  scf.for %k = %n to %n step %n {
  } {tile.stages = 0 : i32}
  return
}

// -----
func.func @negative(%n: index) attributes {tile.kernel} {
  // expected-error @below {{tile.stages must be a constant from 1 to 64, found -2 : i32}}
  scf.for %k = %n to %n step %n {
  } {tile.stages = -2 : i32}
  return
}

// -----
func.func @two(%n: index) attributes {tile.kernel} {
  // expected-error @below {{tile.stages must be a constant from 1 to 64, found "two"}}
  scf.for %k = %n to %n step %n {
  } {tile.stages = "two"}
  return
}

// -----
func.func @number(%n: index) attributes {tile.kernel} {
  // expected-error @below {{tile.warp_specialize must be True or False, found 1 : i32}}
  scf.for %k = %n to %n step %n {
  } {tile.warp_specialize = 1 : i32}
  return
}

// -----
func.func @any(%n: index) attributes {tile.kernel} {
  // expected-error @below {{tile.any_order must be True or False, found 1 : i32}}
  scf.for %k = %n to %n step %n {
  } {tile.any_order = 1 : i32}
  return
}

// -----
func.func @of_a_kernel(%n: index) attributes {tile.kernel} {
  // expected-error @below {{'scf.for' has the unknown demand 'tile.persistent'; known: tile.any_order, tile.loads_ahead, tile.stages, tile.warp_specialize}}
  scf.for %k = %n to %n step %n {
  } {tile.persistent = true}
  return
}

// -----
// expected-error @below {{tile.sum_parts must be 1, 2, 4, 8 or a multiple of 4 up to 256, found 3 : i32}}
func.func @three() attributes {tile.kernel, tile.sum_parts = 3 : i32} { return }
