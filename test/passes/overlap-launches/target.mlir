// A target whose launches follow each other.
// RUN: tilec opt %s --passes overlap-launches --target sm_80 | filecheck %s

// CHECK-LABEL: @roles
// CHECK-NOT: griddepcontrol
func.func @roles() attributes {tile.kernel, tile.shared_bytes = 131072 : i32} {
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
