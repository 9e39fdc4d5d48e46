// One meeting makes the mbarriers of all rings known, behind the last of them: a sync that stands
// there anyway, a new one, or in a cluster whose CTAs reach each other the cluster's.
// RUN: tilec opt %s --passes expand-rings --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!ring = !gpu_tile.ring

// Rings gather behind the first; what stands between them stays in its order.
// CHECK-LABEL: @own
// CHECK-NEXT: "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 0 : i32}
// CHECK-NEXT: "gpu_tile.barrier_init"() {count = 2 : i32, options = {offset = 16 : i32}
// CHECK-NEXT: "gpu_tile.barrier_init"() {count = 3 : i32, options = {offset = 32 : i32}
// CHECK-NEXT: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: gpu_tile.alloc
// CHECK-NEXT: "gpu_tile.ring_position"
// CHECK-NEXT: "gpu_tile.barrier_wait"
// Behind their first use it is too late.
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: return
func.func @own(%n: i32) attributes {tile.kernel} {
  %a = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 64 : i32}} : () -> !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
  %b = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 3 : i32, releases = 0 : i32, options = {offset = 32 : i32}} : () -> !ring
  %at = "gpu_tile.ring_wait"(%a, %n) {previous = false} : (!ring, i32) -> i32
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// CHECK-LABEL: @reused
// CHECK-NEXT: gpu_tile.barrier_init
// CHECK-NEXT: gpu_tile.reserve_tensor_memory
// CHECK-NEXT: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.ring_position"
// CHECK-NEXT: "gpu_tile.barrier_wait"
// CHECK-NEXT: return
func.func @reused(%n: i32) attributes {tile.kernel} {
  %a = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !ring
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 16 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32} : () -> ()
  %at = "gpu_tile.ring_wait"(%a, %n) {previous = false} : (!ring, i32) -> i32
  return
}

// -----
!ring = !gpu_tile.ring

// Neither a sync of some warps nor an arrival at one is a meeting of all, and one in a role is behind
// the uses of others.
// CHECK-LABEL: @others
// CHECK-NEXT: gpu_tile.barrier_init
// CHECK-NEXT: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 5 : i32}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 1 : i32, mode = "sync"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "arrive"
// CHECK-NEXT: gpu_tile.role
func.func @others(%n: i32) attributes {tile.kernel, tile.total_warps = 5 : i32} {
  %a = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !ring
  "gpu_tile.sync"() {barrier = 1 : i32, mode = "sync", warps = 4 : i32} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "arrive", warps = 5 : i32} : () -> ()
  "gpu_tile.role"() ({
    "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 5 : i32} : () -> ()
    %at = "gpu_tile.ring_wait"(%a, %n) {previous = false} : (!ring, i32) -> i32
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// A release in another CTA: its barriers have to be there.
// CHECK-LABEL: @cluster
// CHECK-NEXT: gpu_tile.barrier_init
// CHECK-NEXT: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK-NOT: gpu_tile.sync
// CHECK: "gpu_tile.remote_arrive"
func.func @cluster(%n: i32, %mask: i32) attributes {tile.kernel, tile.cluster = array<i32: 2, 1>} {
  %a = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !ring
  %at = "gpu_tile.ring_acquire"(%a, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_release"(%a, %at, %mask) {by = "once"} : (!ring, i32, i32) -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// CTAs of a cluster that do nothing to each other meet by themselves.
// CHECK-LABEL: @apart
// CHECK-NOT: gpu_tile.cluster_sync
// CHECK: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NOT: gpu_tile.cluster_sync
func.func @apart(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2, 1>} {
  %a = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !ring
  %at = "gpu_tile.ring_acquire"(%a, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_release"(%a, %at) {by = "once"} : (!ring, i32) -> ()
  return
}
