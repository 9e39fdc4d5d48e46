// A role syncs its own warps; neighbouring roles are ordered by rings, and what stands before
// them by a sync in front of the first. One thread alone never syncs.
// RUN: tilec opt %s --passes insert-barriers --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
!u = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@0,1@1) V(4,8):(1@0,8@1)">>
!s = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>

// CHECK-LABEL: @own_barriers
// CHECK: "gpu_tile.role"
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 1 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK: name = "first"
// CHECK-NOT: barrier = 0
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 2 : i32, mode = "sync", warps = 2 : i32}
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK: name = "second"
// CHECK: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 6 : i32}
// CHECK-NEXT: "gpu_tile.buffer_store"
func.func @own_barriers(%x: !t) attributes {tile.kernel, tile.total_warps = 6 : i32} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %r = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  "gpu_tile.role"() ({
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    %y = "gpu_tile.buffer_load"(%s) : (!s) -> !u
    gpu.yield
  }) {name = "first", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    "gpu_tile.buffer_store"(%x, %r) : (!t, !s) -> ()
    %y = "gpu_tile.buffer_load"(%r) : (!s) -> !u
    gpu.yield
  }) {name = "second", first_warp = 4 : i32, warps = 2 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  return
}

// -----
!t = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
!u = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@0,1@1) V(4,8):(1@0,8@1)">>
!s = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
!ring = !gpu_tile.ring
!map = !gpu_tile.tensor_map

// CHECK-LABEL: @handed_over
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 8 : i32}
// CHECK-NEXT: "gpu_tile.role"
// CHECK-NOT: "gpu_tile.sync"
func.func @handed_over(%x: !t, %map: !map, %n: i32) attributes {tile.kernel, tile.total_warps = 8 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 32768 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %r = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  "gpu_tile.role"() ({
    %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
    "gpu_tile.tma_load"(%map, %r, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    "gpu_tile.tma_load"(%map, %r, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    %slot = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
    %y = "gpu_tile.buffer_load"(%r) : (!s) -> !u
    %z = "gpu_tile.buffer_load"(%s) : (!s) -> !u
    gpu.yield
  }) {name = "use", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
