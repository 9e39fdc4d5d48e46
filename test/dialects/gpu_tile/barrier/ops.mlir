// Barriers, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @whole_cta_and_named
func.func @whole_cta_and_named() {
  // CHECK: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  // CHECK: "gpu_tile.sync"() {barrier = 15 : i32, mode = "arrive", warps = 32 : i32} : () -> ()
  "gpu_tile.sync"() {barrier = 15 : i32, warps = 32 : i32, mode = "arrive"} : () -> ()
  return
}

// CHECK-LABEL: @fences
func.func @fences() {
  // CHECK: "gpu_tile.fence"() {kind = "async_shared"} : () -> ()
  "gpu_tile.fence"() {kind = "async_shared"} : () -> ()
  // CHECK: "gpu_tile.fence"() {kind = "async_global"} : () -> ()
  "gpu_tile.fence"() {kind = "async_global"} : () -> ()
  // CHECK: "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  // CHECK: "gpu_tile.fence"() {kind = "tcgen05_before"} : () -> ()
  "gpu_tile.fence"() {kind = "tcgen05_before"} : () -> ()
  // CHECK: "gpu_tile.fence"() {kind = "tcgen05_after"} : () -> ()
  "gpu_tile.fence"() {kind = "tcgen05_after"} : () -> ()
  return
}
