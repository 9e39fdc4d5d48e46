// Every rule of roles.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @before_the_first_warp() {
  // expected-error @below {{'gpu_tile.role' op a CTA has 32 warps, found 4 from -1 on}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = -1 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
func.func @no_warps() {
  // expected-error @below {{'gpu_tile.role' op a CTA has 32 warps, found 0 from 4 on}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 0 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
func.func @past_the_last_warp() {
  // expected-error @below {{'gpu_tile.role' op a CTA has 32 warps, found 4 from 29 on}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 29 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
func.func @registers_in_sevens() {
  // expected-error @below {{'gpu_tile.role' op registers must be a multiple of 8 from 24 to 256, found 42}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 42 : i32} : () -> ()
  return
}

// -----
func.func @too_few_registers() {
  // expected-error @below {{'gpu_tile.role' op registers must be a multiple of 8 from 24 to 256, found 16}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 16 : i32} : () -> ()
  return
}

// -----
func.func @too_many_registers() {
  // expected-error @below {{'gpu_tile.role' op registers must be a multiple of 8 from 24 to 256, found 264}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 264 : i32} : () -> ()
  return
}

// -----
func.func @registers_of_a_warp() {
  // expected-error @below {{'gpu_tile.role' op registers are given to whole warpgroups of 4 warps}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 1 : i32, registers = 40 : i32} : () -> ()
  return
}

// -----
func.func @registers_across_warpgroups() {
  // expected-error @below {{'gpu_tile.role' op registers are given to whole warpgroups of 4 warps}}
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 2 : i32, warps = 4 : i32, registers = 40 : i32} : () -> ()
  return
}
