// Every rule of barriers.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @sync_on_barrier_16() {
  // expected-error @below {{'gpu_tile.sync' op barrier must be 0 to 15, found 16}}
  "gpu_tile.sync"() {barrier = 16 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  return
}

// -----
func.func @sync_of_no_warps() {
  // expected-error @below {{'gpu_tile.sync' op warps must be 1 to 32, found 0}}
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 0 : i32, mode = "sync"} : () -> ()
  return
}

// -----
func.func @sync_of_too_many_warps() {
  // expected-error @below {{'gpu_tile.sync' op warps must be 1 to 32, found 33}}
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 33 : i32, mode = "sync"} : () -> ()
  return
}

// -----
func.func @sync_mode_unknown() {
  // expected-error @below {{'gpu_tile.sync' op attribute 'mode' must be one of 'sync', 'arrive', found "wait"}}
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "wait"} : () -> ()
  return
}

// -----
func.func @sync_barrier_is_i64() {
  // expected-error @below {{'gpu_tile.sync' op attribute 'barrier' must be an i32 integer, found 0 : i64}}
  "gpu_tile.sync"() {barrier = 0 : i64, warps = 4 : i32, mode = "sync"} : () -> ()
  return
}

// -----
func.func @fence_of_unknown_kind() {
  // expected-error @below {{'gpu_tile.fence' op attribute 'kind' must be one of 'async_shared', 'async_global', 'barrier_init', 'tcgen05_before', 'tcgen05_after', found "tensor_map"}}
  "gpu_tile.fence"() {kind = "tensor_map"} : () -> ()
  return
}
