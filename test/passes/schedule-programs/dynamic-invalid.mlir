// Kernels whose CTAs cannot ask for programs, though the target lets them.
// RUN: tilec opt %s --passes schedule-programs --target sm_100a --num-warps 1 --split-input-file --verify-diagnostics

// expected-error @below {{persistent="dynamic" was asked for, but the kernel orders its programs itself}}
func.func @ordered(%n: i32) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %i, %j = "gpu_tile.tile_order"(%n, %n, %n) {order = "rows", group = 1 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}

// -----
// expected-error @below {{persistent="dynamic" was asked for, but programs that order memory for each other must begin in order}}
func.func @waits() attributes {tile.kernel, tile.persistent = "dynamic"} {
  "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
  return
}
