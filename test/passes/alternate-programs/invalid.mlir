// Roles that there are not.
// RUN: tilec opt %s --passes alternate-programs --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

// expected-error @below {{consumers="pingpong" was asked for, but the kernel has no roles "load" and "compute"}}
func.func @no_roles() attributes {tile.kernel, tile.consumers = "pingpong"} {
  return
}
