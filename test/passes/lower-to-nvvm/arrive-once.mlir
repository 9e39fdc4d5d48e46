// One arrival for a role: by the one thread that runs it, or by the first lane when all have met.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 2 | filecheck %s

// CHECK-LABEL: llvm.func @arrive(
func.func @arrive(%slot: i32, %n: i32) attributes {tile.kernel, tile.total_warps = 2 : i32} {
  %free = "gpu_tile.barrier_init"() {slots = 2 : i32, count = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  // CHECK: nvvm.elect.sync
  // CHECK-NOT: bar.warp.sync
  // CHECK: "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}"
  "gpu_tile.role"() ({
    "gpu_tile.barrier_arrive"(%free, %slot) {per = "once"} : (!gpu_tile.barrier, i32) -> ()
    gpu.yield
  }) {name = "alone", first_warp = 0 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  // CHECK: tcgen05.fence::after_thread_sync
  // CHECK: bar.warp.sync 0xffffffff
  // CHECK: "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "r,b,~{memory}"
  "gpu_tile.role"() ({
    "gpu_tile.fence"() {kind = "tcgen05_after"} : () -> ()
    "gpu_tile.barrier_arrive"(%free, %slot) {per = "once"} : (!gpu_tile.barrier, i32) -> ()
    gpu.yield
  }) {name = "together", first_warp = 1 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}
