// Of a cluster, each CTA ends by itself where all that reaches it is awaited there. To do it again
// changes nothing.
// RUN: tilec opt %s --passes await-arrivals --target sm_90a | filecheck %s
// RUN: tilec opt %s --passes await-arrivals,await-arrivals --target sm_90a | filecheck %s

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!slots = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// Threads of both CTAs release a slot, behind their wait for what is multicast there.
// CHECK-LABEL: @multicast
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {{.*}}releases = 2
// CHECK: %[[FILLS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.for %[[AHEAD:.*]] = %c0_i32{{.*}} to %c3_i32{{.*}} step %c1_i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.addi %[[FILLS]], %[[AHEAD]]
// CHECK-NEXT: "gpu_tile.ring_acquire"(%[[RING]], %[[COUNT]])
// CHECK-NEXT: }
// CHECK-NOT: scf.for
// CHECK: name = "load"
// CHECK: name = "compute"
// CHECK-NEXT: return
func.func @multicast(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %mask = "gpu_tile.cluster_mask"() {axes = array<i32: 0>} : () -> i32
  %slots = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 2 : i32, options = {offset = 24576 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!gpu_tile.ring, i32) -> ()
      %slot = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
      "gpu_tile.tma_multicast"(%map, %slot, %ring, %at, %mask, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.ring, i32, i32, i32, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at, %mask) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// One CTA alone waits for free slots, and in some launches: so it does at its end.
// CHECK-LABEL: @one_waits
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: %[[SOME:.*]] = arith.cmpi slt
// CHECK: %[[COUNT:.*]]:2 = scf.while
// CHECK: scf.if %[[FIRST]] {
// CHECK: scf.if %[[SOME]] {
// CHECK: %[[BOTH:.*]] = arith.andi %[[SOME]], %[[FIRST]]
// CHECK-NEXT: scf.if %[[BOTH]] {
// CHECK: scf.for
// CHECK-NEXT: arith.addi %[[COUNT]]#1
// CHECK-NEXT: "gpu_tile.ring_acquire"
// CHECK: name = "load"
// CHECK: name = "compute"
// CHECK-NEXT: return
func.func @one_waits(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %place = "gpu_tile.cluster_position"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %first = arith.cmpi eq, %place, %zero : i32
  %some = arith.cmpi slt, %zero, %n : i32
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %true = arith.constant true
    %end:2 = scf.while (%there = %true, %p = %zero, %count = %zero) : (i1, i32, i32) -> (i32, i32) {
      scf.condition(%there) %p, %count : i32, i32
    } do {
    ^bb0(%p: i32, %count: i32):
      scf.if %first {
        scf.if %some {
          %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
        }
      }
      %after = arith.addi %p, %one : i32
      %again = arith.cmpi slt, %after, %n : i32
      %next = arith.addi %count, %one : i32
      scf.yield %again, %after, %next : i1, i32, i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %zero) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %one) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// Slots that are filled once, in no loop.
// CHECK-LABEL: @once
// CHECK: %[[FILLS:.*]] = arith.addi %c0_i32{{.*}}, %c1_i32
// CHECK: scf.for
// CHECK-NEXT: arith.addi %[[FILLS]]
// CHECK: name = "load"
// CHECK: name = "compute"
// CHECK-NEXT: return
func.func @once() attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %zero = arith.constant 0 : i32
  %both = arith.constant 3 : i32
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %at = "gpu_tile.ring_acquire"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %zero) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}
