// A demand that says neither.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --split-input-file --verify-diagnostics

// expected-error @below {{tile.persistent must be true, false or "dynamic", found "yes"}}
func.func @k(%n: index) attributes {tile.kernel, tile.persistent = "yes"} {
  return
}

// -----
// expected-error @below {{an order of programs was asked for, but only grids of dots in two dimensions, whose programs wait for none, have an order}}
func.func @no_dots(%n: index) attributes {tile.kernel, tile.order = "rows"} {
  return
}

// -----
func.func @whatever(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{tile.any_order must be true or false, found 1 : i32}}
  scf.for %k = %c0 to %n step %n {
  } {tile.any_order = 1 : i32}
  return
}
