// A role syncs its own warps; neighbouring roles are ordered by mbarriers, and what stands before
// them by a sync in front of the first. One thread alone never syncs.
// RUN: tilec opt %s --passes insert-barriers --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
!u = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@0,1@1) V(4,8):(1@0,8@1)">>
!s = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
!bar = !gpu_tile.barrier

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
!bar = !gpu_tile.barrier
!map = !gpu_tile.tensor_map

// CHECK-LABEL: @handed_over
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 8 : i32}
// CHECK-NEXT: "gpu_tile.role"
// CHECK-NOT: "gpu_tile.sync"
func.func @handed_over(%x: !t, %full: !bar, %empty: !bar, %map: !map, %slot: i32, %no: i1) attributes {tile.kernel, tile.total_warps = 8 : i32} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %r = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  "gpu_tile.role"() ({
    "gpu_tile.barrier_wait"(%empty, %slot, %no) : (!bar, i32, i1) -> ()
    "gpu_tile.tma_load"(%map, %r, %full, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
    "gpu_tile.tma_load"(%map, %r, %full, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    "gpu_tile.barrier_wait"(%full, %slot, %no) : (!bar, i32, i1) -> ()
    %y = "gpu_tile.buffer_load"(%r) : (!s) -> !u
    %z = "gpu_tile.buffer_load"(%s) : (!s) -> !u
    gpu.yield
  }) {name = "use", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
