// A CTA of one warp meets as a warp; one warp of two at a barrier, as all of them.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 1 | filecheck %s
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 2 | filecheck %s --check-prefix TWO

// CHECK-LABEL: llvm.func @meets
// CHECK: bar.warp.sync 0xffffffff;
// CHECK-NOT: bar.
// TWO-NOT: bar.warp.sync
// TWO: bar.sync 0, 32;
func.func @meets() attributes {tile.kernel} {
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 1 : i32} : () -> ()
  return
}
