// Without roles the kernel's loop asks and reads; barriers get a fence and a sync. A kernel that
// takes every n-th program stays as it is, and so does one that asks already.
// RUN: tilec opt %s --passes request-programs,request-programs --target sm_100a --num-warps 2 --split-input-file | filecheck %s

// CHECK-LABEL: @asks
// CHECK: "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 3 : i32}
// CHECK: "gpu_tile.barrier_init"() {count = 2 : i32, options = {}, slots = 3 : i32}
// CHECK: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 2 : i32}
// CHECK: scf.while
// CHECK: "gpu_tile.next_program"
// CHECK: "gpu_tile.next_program_read"
// CHECK: "gpu_tile.barrier_arrive"({{.*}}) {per = "warp"}
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
