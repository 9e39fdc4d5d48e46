// Without roles the kernel's loop asks and reads; one ring has the answers. A kernel that
// takes every n-th program stays as it is, and so does one that asks already.
// RUN: tilec opt %s --passes request-programs,request-programs --target sm_100a --num-warps 2 --split-input-file | filecheck %s

// CHECK-LABEL: @asks
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 2 : i32, slots = 3 : i32}
// CHECK-NOT: gpu_tile.make_ring
// CHECK: scf.while
// CHECK: %[[FREE:.*]] = "gpu_tile.ring_acquire"(%[[RING]], %[[N:.*]]) :
// CHECK: "gpu_tile.next_program"(%{{.*}}, %[[RING]], %[[FREE]])
// CHECK: %[[FULL:.*]] = "gpu_tile.ring_wait"(%[[RING]], %[[N]]) {previous = false}
// CHECK: "gpu_tile.next_program_read"
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[FULL]]) {by = "warp"}
// CHECK-NOT: gpu_tile.next_program
func.func @asks(%n: i32) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %p = %first to %n step %step : i32 {
  }
  return
}

// -----
// CHECK-LABEL: @takes
// CHECK: scf.for
// CHECK-NOT: gpu_tile.next_program
func.func @takes(%n: i32) attributes {tile.kernel, tile.persistent = true} {
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %p = %first to %n step %step : i32 {
  }
  return
}
