// Without the demand, or with that for what happens anyway, roles stay as they are.
// RUN: tilec opt %s --passes alternate-programs --target sm_90a --num-warps 4 | filecheck %s

// CHECK-LABEL: @undemanded
// CHECK-COUNT-1: gpu_tile.role
// CHECK-NOT: gpu_tile.role
// CHECK: return
func.func @undemanded() attributes {tile.kernel, tile.total_warps = 8 : i32} {
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// CHECK-LABEL: @cooperative
// CHECK-COUNT-1: gpu_tile.role
// CHECK-NOT: gpu_tile.role
// CHECK: return
func.func @cooperative() attributes {tile.kernel, tile.consumers = "cooperative", tile.total_warps = 8 : i32} {
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
