// A cluster asks together: the CTA of rank 0 waits for the readers of both, and every CTA expects
// the answer. A role that a branch lets one CTA run reads once. Clusters are numbered.
// RUN: tilec opt %s --passes request-programs --target sm_100a --num-warps 4 | filecheck %s

// CHECK-LABEL: @k
// Four warps in each of two CTAs, a role of one thread in each, one of one thread in the first.
// CHECK: %[[ASKED:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 3 : i32}
// CHECK: %[[FREE:.*]] = "gpu_tile.barrier_init"() {count = 11 : i32, options = {}, slots = 3 : i32}
// CHECK: %[[PLACE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[PLACE]], %c0
// CHECK: %[[MASK:.*]] = arith.constant 1 : i32
func.func @k(%n: i32) attributes {tile.kernel, tile.persistent = "dynamic", tile.cluster = array<i32: 2, 1, 1>, tile.total_warps = 8 : i32} {
  %place = "gpu_tile.cluster_position"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %even = arith.cmpi eq, %place, %zero : i32
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  // CHECK: gpu_tile.role
  // CHECK: "gpu_tile.barrier_expect"(%[[ASKED]], %[[AT:.*]]#0) {bytes = 16 : i32}
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FREE]], %[[AT]]#0
  // CHECK-NEXT: "gpu_tile.next_program"(%{{.*}}, %[[ASKED]], %[[AT]]#0)
  // CHECK-NEXT: }
  // CHECK: "gpu_tile.barrier_wait"(%[[ASKED]], %[[AT]]#0, %[[AT]]#1)
  // CHECK: %[[READ:.*]]:4 = "gpu_tile.next_program_read"
  // CHECK: "gpu_tile.remote_arrive"(%[[FREE]], %[[AT]]#0, %[[MASK]]) {per = "once"}
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
  // CHECK: "gpu_tile.remote_arrive"(%[[FREE]], %{{.*}}, %[[MASK]]) {per = "once"}
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
  // CHECK: "gpu_tile.remote_arrive"(%[[FREE]], %{{.*}}, %[[MASK]]) {per = "warp"}
  "gpu_tile.role"() ({
    %first = "gpu_tile.cluster_id"() : () -> i32
    %step = "gpu_tile.num_clusters"() : () -> i32
    scf.for %p = %first to %n step %step : i32 {
      "gpu_tile.sync"() {barrier = 1 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  return
}
