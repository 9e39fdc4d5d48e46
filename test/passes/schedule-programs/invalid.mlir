// A demand that says neither.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --split-input-file --verify-diagnostics

// expected-error @below {{tile.persistent must be true, false or "dynamic", found "yes"}}
func.func @k(%n: index) attributes {tile.kernel, tile.persistent = "yes"} {
  return
}
