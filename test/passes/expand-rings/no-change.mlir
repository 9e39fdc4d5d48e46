// What has no rings stays as it is, mbarriers of its own too.
// RUN: tilec opt %s --target sm_90a > %t.before
// RUN: tilec opt %s --passes expand-rings --target sm_90a | diff %t.before -

func.func @written(%n: i32) attributes {tile.kernel} {
  %full = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 0 : i32}, slots = 2 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32} : () -> ()
  %at:2 = "gpu_tile.ring_position"(%n) {slots = 2 : i32} : (i32) -> (i32, i1)
  "gpu_tile.barrier_wait"(%full, %at#0, %at#1) : (!gpu_tile.barrier, i32, i1) -> ()
  return
}
