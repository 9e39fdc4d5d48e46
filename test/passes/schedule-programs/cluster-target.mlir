// Where there are no clusters, a demand for them is an error.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 --verify-diagnostics

// expected-error @below {{cluster=(2, 1, 1) was asked for, but sm_80 has no clusters}}
func.func @k() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  return
}
