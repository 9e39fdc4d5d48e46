// A lane of each warp makes barriers, in turn: five warps six of them, in two steps.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 5 | filecheck %s

// CHECK-LABEL: llvm.func @six
// CHECK-COUNT-2: mbarrier.init.shared::cta.b64 [$0], 3;
// CHECK-NOT: mbarrier.init
func.func @six() attributes {tile.kernel} {
  %full = "gpu_tile.barrier_init"() {slots = 6 : i32, count = 3 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 5 : i32} : () -> ()
  return
}
