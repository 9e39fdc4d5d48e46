// A kernel by hand says how it is launched; not every target lets its CTAs ask.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --verify-diagnostics

// expected-error @below {{persistent="dynamic": sm_90a has no cluster launch control}}
func.func @k() attributes {tile.kernel, tile.explicit, tile.persistent = "dynamic"} {
  return
}
