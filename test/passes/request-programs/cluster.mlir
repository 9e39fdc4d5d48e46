// A cluster asks together: the CTA of rank 0 waits for the readers of both, and every CTA expects
// the answer. A role that a branch lets one CTA run reads once. Clusters are numbered.
// RUN: tilec opt %s --passes request-programs --target sm_100a --num-warps 4 | filecheck %s

// CHECK-LABEL: @k
// Four warps in each of two CTAs, a role of one thread in each, one of one thread in the first.
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 11 : i32, slots = 3 : i32}
// CHECK: %[[PLACE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[PLACE]], %c0
// CHECK: %[[MASK:.*]] = arith.constant 1 : i32
func.func @k(%n: i32) attributes {tile.kernel, tile.persistent = "dynamic", tile.cluster = array<i32: 2, 1, 1>, tile.total_warps = 8 : i32} {
  %place = "gpu_tile.cluster_position"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %even = arith.cmpi eq, %place, %zero : i32
  // CHECK: gpu_tile.role
  // CHECK: %[[AT:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[N:.*]]) :
  // CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[AT]]) {bytes = 16 : i32}
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK-NEXT: %[[FREE:.*]] = "gpu_tile.ring_acquire"(%[[RING]], %[[N]])
  // CHECK-NEXT: %[[ANSWER:.*]] = "gpu_tile.slot"(%{{.*}}, %[[FREE]])
  // CHECK-NEXT: "gpu_tile.next_program"(%[[ANSWER]], %[[RING]], %[[FREE]])
  // CHECK-NEXT: }
  // CHECK: %[[FULL:.*]] = "gpu_tile.ring_wait"(%[[RING]], %[[N]]) {previous = false}
  // CHECK: %[[READ:.*]]:4 = "gpu_tile.next_program_read"
  // CHECK: "gpu_tile.ring_release"(%[[RING]], %[[FULL]], %[[MASK]]) {by = "once"}
  // CHECK: %[[NEXT:.*]] = arith.divui %[[READ]]#1, %c2
  // CHECK: scf.yield %[[READ]]#0, %[[NEXT]]
  "gpu_tile.role"() ({
    %first = "gpu_tile.cluster_id"() : () -> i32
    %step = "gpu_tile.num_clusters"() : () -> i32
    scf.for %p = %first to %n step %step : i32 {
    }
    gpu.yield
  // CHECK: name = "load"
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  // CHECK: "gpu_tile.ring_release"(%[[RING]], %{{.*}}, %[[MASK]]) {by = "once"}
  "gpu_tile.role"() ({
    scf.if %even {
      %first = "gpu_tile.cluster_id"() : () -> i32
      %step = "gpu_tile.num_clusters"() : () -> i32
      scf.for %p = %first to %n step %step : i32 {
      }
    }
    gpu.yield
  // CHECK: name = "multiply"
  }) {name = "multiply", first_warp = 5 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  // CHECK: "gpu_tile.ring_release"(%[[RING]], %{{.*}}, %[[MASK]]) {by = "warp"}
  "gpu_tile.role"() ({
    %first = "gpu_tile.cluster_id"() : () -> i32
    %step = "gpu_tile.num_clusters"() : () -> i32
    scf.for %p = %first to %n step %step : i32 {
      "gpu_tile.sync"() {barrier = 1 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
