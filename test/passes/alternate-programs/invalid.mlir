// Demands that there are not, and roles that there are not.
// RUN: tilec opt %s --passes alternate-programs --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

// expected-error @below {{tile.consumers must be "cooperative" or "pingpong", found "alone"}}
func.func @another_word() attributes {tile.kernel, tile.consumers = "alone"} {
  return
}

// -----

// expected-error @below {{tile.consumers must be "cooperative" or "pingpong", found true}}
func.func @no_word() attributes {tile.kernel, tile.consumers = true} {
  return
}

// -----

// expected-error @below {{consumers="pingpong" was asked for, but the kernel has no roles "load" and "compute"}}
func.func @no_roles() attributes {tile.kernel, tile.consumers = "pingpong"} {
  return
}
