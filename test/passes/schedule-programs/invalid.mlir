// An order that there cannot be.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --split-input-file --verify-diagnostics

// expected-error @below {{an order of programs was asked for, but only grids of dots in two dimensions, whose programs wait for none, have an order}}
func.func @no_dots(%n: index) attributes {tile.kernel, tile.order = "rows"} {
  return
}
