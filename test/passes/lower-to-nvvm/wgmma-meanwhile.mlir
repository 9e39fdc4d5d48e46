// An instruction that ptxas moves nothing across.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 | filecheck %s

// CHECK-LABEL: llvm.func @beside(
func.func @beside() attributes {tile.kernel} {
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"pmevent 0;"
  "gpu_tile.wgmma_meanwhile"() : () -> ()
  return
}
