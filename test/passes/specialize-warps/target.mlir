// A target without setmaxnreg.
// RUN: tilec opt %s --passes specialize-warps --target sm_80 --split-input-file --verify-diagnostics

func.func @demanded(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{warp_specialize=True was asked for, but sm_80 does not move registers between warps}}
  scf.for %k = %c0 to %n step %c64 {
  } {tile.warp_specialize = true}
  return
}

// -----
func.func @forbidden(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
  } {tile.warp_specialize = false}
  return
}
