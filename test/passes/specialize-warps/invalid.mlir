// Demands that cannot be met, with their reason, at the loop.
// RUN: tilec opt %s --passes specialize-warps --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

func.func @no_copies(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{warp_specialize=True was asked for, but no loop fills buffers that other warps could fill}}
  scf.for %k = %c0 to %n step %c64 {
  } {tile.warp_specialize = true}
  return
}
