// Only some targets let CTAs ask for programs.
// RUN: tilec opt %s --passes schedule-programs --target sm_90a --num-warps 1 --verify-diagnostics

// expected-error @below {{persistent="dynamic" was asked for, but sm_90a has no cluster launch control}}
func.func @k() attributes {tile.kernel, tile.persistent = "dynamic"} {
  return
}
