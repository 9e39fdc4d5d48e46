// Roles, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @load_and_multiply
func.func @load_and_multiply() {
  // CHECK: "gpu_tile.role"() ({
  // CHECK: gpu.yield
  // CHECK: }) {first_warp = 8 : i32, name = "load", registers = 40 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 8 : i32, warps = 4 : i32, registers = 40 : i32} : () -> ()
  // CHECK: "gpu_tile.role"() ({
  // CHECK: gpu.yield
  // CHECK: }) {first_warp = 0 : i32, name = "multiply", registers = 232 : i32, warps = 8 : i32} : () -> ()
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "multiply", first_warp = 0 : i32, warps = 8 : i32, registers = 232 : i32} : () -> ()
  // CHECK: "gpu_tile.role"() ({
  // CHECK: gpu.yield
  // CHECK: }) {first_warp = 31 : i32, name = "last", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "last", first_warp = 31 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}
