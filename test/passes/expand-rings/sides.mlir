// Either side of a ring becomes one row of mbarriers, of full slots, then of free ones; a side that
// nobody counts has none. What arrives decides how.
// RUN: tilec opt %s --passes expand-rings --target sm_100a --num-warps 4 --split-input-file | filecheck %s

!ring = !gpu_tile.ring
!map = !gpu_tile.tensor_map
!slots = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// CHECK-LABEL: @copy_engine
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 24576 : i32}, slots = 3 : i32}
// CHECK-NEXT: %[[FREE:.*]] = "gpu_tile.barrier_init"() {count = 2 : i32, options = {offset = 24600 : i32}, slots = 3 : i32}
// CHECK-NEXT: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 12 : i32}
// CHECK: scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}})
// CHECK-NEXT: %[[P:.*]]:2 = "gpu_tile.ring_position"(%[[N]]) {slots = 3 : i32}
// CHECK-NEXT: %[[S:.*]] = "gpu_tile.slot"(%{{.*}}, %[[P]]#0)
// A slot is free at first: the parity before the first turn's.
// CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: %[[BEFORE:.*]] = arith.xori %[[P]]#1, %[[TRUE]]
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FREE]], %[[P]]#0, %[[BEFORE]])
// CHECK-NEXT: "gpu_tile.barrier_expect"(%[[FULL]], %[[P]]#0) {bytes = 8192 : i32}
// CHECK-NEXT: "gpu_tile.tma_load"(%{{.*}}, %[[S]], %[[FULL]], %[[P]]#0, %{{.*}}, %{{.*}}) {{.*}} !gpu_tile.barrier, i32
// CHECK: name = "load"
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}})
// CHECK-NEXT: %[[Q:.*]]:2 = "gpu_tile.ring_position"(%[[M]]) {slots = 3 : i32}
// CHECK-NEXT: %[[R:.*]] = "gpu_tile.slot"(%{{.*}}, %[[Q]]#0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FULL]], %[[Q]]#0, %[[Q]]#1)
// CHECK-NEXT: "gpu_tile.wgmma"(%[[R]], %[[R]],
// CHECK: "gpu_tile.barrier_arrive"(%[[FREE]], %[[Q]]#0) {per = "warpgroup"}
// CHECK: name = "compute"
!p = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
func.func @copy_engine(%map: !map, %n: i32, %acc: !p) attributes {tile.kernel, tile.total_warps = 12 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 2 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  "gpu_tile.role"() ({
    %end = scf.for %k = %zero to %n step %one iter_args(%count = %zero) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %k) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
      %next = arith.addi %count, %one : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {name = "load", first_warp = 8 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    %end = scf.for %k = %zero to %n step %one iter_args(%count = %zero) -> (i32) : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %q = "gpu_tile.wgmma"(%s, %s, %acc) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
      %w = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!p) -> !p
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!ring, i32) -> ()
      %next = arith.addi %count, %one : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 8 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// Threads, each of their copies, the end of products; in this CTA, or in those of a mask.
// CHECK-LABEL: @who_arrives
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 7 : i32
// CHECK: %[[FREE:.*]] = "gpu_tile.barrier_init"() {count = 9 : i32
// CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FULL]], %[[P]]#0) {per = "thread"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FULL]], %[[P]]#0) {per = "warp"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FULL]], %[[P]]#0) {per = "warpgroup"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FULL]], %[[P]]#0) {per = "once"}
// CHECK-NEXT: "gpu_tile.cp_async_arrive"(%[[FULL]], %[[P]]#0)
// CHECK-NEXT: "gpu_tile.tcgen05_commit"(%[[FULL]], %[[P]]#0)
// CHECK-NEXT: "gpu_tile.remote_arrive"(%[[FULL]], %[[P]]#0, %arg1) {per = "warp"}
// CHECK-NEXT: "gpu_tile.tcgen05_multicast_commit"(%[[FULL]], %[[P]]#0, %arg1)
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[P]]#0) {per = "thread"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[P]]#0) {per = "warp"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[P]]#0) {per = "warpgroup"}
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[P]]#0) {per = "once"}
// CHECK-NEXT: "gpu_tile.tcgen05_commit"(%[[FREE]], %[[P]]#0)
// CHECK-NEXT: "gpu_tile.remote_arrive"(%[[FREE]], %[[P]]#0, %arg1) {per = "once"}
// CHECK-NEXT: "gpu_tile.tcgen05_multicast_commit"(%[[FREE]], %[[P]]#0, %arg1)
// CHECK-NEXT: return
func.func @who_arrives(%n: i32, %mask: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 7 : i32, releases = 9 : i32, options = {offset = 0 : i32}} : () -> !ring
  %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_publish"(%ring, %at) {by = "thread"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at) {by = "warpgroup"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at) {by = "once"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at) {by = "copies"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at) {by = "products"} : (!ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at, %mask) {by = "warp"} : (!ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %at, %mask) {by = "products"} : (!ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at) {by = "thread"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at) {by = "once"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at) {by = "products"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at, %mask) {by = "once"} : (!ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %at, %mask) {by = "products"} : (!ring, i32, i32) -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// What nobody counts takes no memory: the free side alone begins at the ring's offset.
// CHECK-LABEL: @one_side
// CHECK-NEXT: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 0 : i32}, slots = 2 : i32}
// CHECK-NEXT: %[[FREE:.*]] = "gpu_tile.barrier_init"() {count = 4 : i32, options = {offset = 16 : i32}, slots = 3 : i32}
// CHECK-NEXT: gpu_tile.fence
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: %[[F:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 2 : i32}
// CHECK-NEXT: "gpu_tile.tcgen05_commit"(%[[FULL]], %[[F]]#0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FULL]], %[[F]]#0, %[[F]]#1)
// CHECK-NEXT: %[[E:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 3 : i32}
// CHECK: %[[BEFORE:.*]] = arith.xori %[[E]]#1
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FREE]], %[[E]]#0, %[[BEFORE]])
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[E]]#0) {per = "warp"}
// CHECK-NEXT: return
func.func @one_side(%n: i32) attributes {tile.kernel} {
  %sums = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !ring
  %order = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 4 : i32, options = {offset = 16 : i32}} : () -> !ring
  %at = "gpu_tile.ring_slot"(%sums, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_publish"(%sums, %at) {by = "products"} : (!ring, i32) -> ()
  %there = "gpu_tile.ring_wait"(%sums, %n) {previous = false} : (!ring, i32) -> i32
  %turn = "gpu_tile.ring_acquire"(%order, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_release"(%order, %turn) {by = "warp"} : (!ring, i32) -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// Groups of copies order both sides: turns are positions, and nobody meets for that.
// CHECK-LABEL: @no_side
// CHECK-NEXT: %[[P:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 4 : i32}
// CHECK-NEXT: "gpu_tile.slot"(%{{.*}}, %[[P]]#0)
// CHECK-NEXT: return
func.func @no_side(%n: i32, %all: !gpu_tile.buffer<tensor<4x64xf32>, #gpu_tile.shared<"(64):(1)">>) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 0 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !ring
  %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
  %s = "gpu_tile.slot"(%all, %at) : (!gpu_tile.buffer<tensor<4x64xf32>, #gpu_tile.shared<"(64):(1)">>, i32) -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
  return
}
