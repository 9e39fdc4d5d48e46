// Of a cluster, each CTA ends by itself where all that reaches it is awaited there. To do it again
// changes nothing.
// RUN: tilec opt %s --passes await-arrivals --target sm_90a | filecheck %s
// RUN: tilec opt %s --passes await-arrivals,await-arrivals --target sm_90a | filecheck %s

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!ring = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// Threads of both CTAs give a slot back, behind their wait for what is multicast there.
// CHECK-LABEL: @multicast
// CHECK: %[[EMPTY:.*]] = "gpu_tile.barrier_init"() {count = 2
// CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK: %[[FILLS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.for %[[AHEAD:.*]] = %c0_i32{{.*}} to %c3_i32{{.*}} step %c1_i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.addi %[[FILLS]], %[[AHEAD]]
// CHECK-NEXT: %[[AT:.*]]:2 = "gpu_tile.ring_position"(%[[COUNT]]) {slots = 3 : i32}
// CHECK: %[[FREE:.*]] = arith.xori %[[AT]]#1
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[EMPTY]], %[[AT]]#0, %[[FREE]])
// CHECK-NOT: scf.for
// CHECK: name = "load"
// CHECK: name = "compute"
// CHECK-NEXT: return
func.func @multicast(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %mask = "gpu_tile.cluster_mask"() {axes = array<i32: 0>} : () -> i32
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !ring
  %full = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 24576 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  %empty = "gpu_tile.barrier_init"() {count = 2 : i32, options = {offset = 24600 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
      %free = arith.xori %at#1, %true : i1
      "gpu_tile.barrier_wait"(%empty, %at#0, %free) : (!gpu_tile.barrier, i32, i1) -> ()
      "gpu_tile.barrier_expect"(%full, %at#0) {bytes = 8192 : i32} : (!gpu_tile.barrier, i32) -> ()
      %slot = "gpu_tile.slot"(%ring, %at#0) : (!ring, i32) -> !slot
      "gpu_tile.tma_multicast"(%map, %slot, %full, %at#0, %mask, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.barrier, i32, i32, i32, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
      "gpu_tile.barrier_wait"(%full, %at#0, %at#1) : (!gpu_tile.barrier, i32, i1) -> ()
      "gpu_tile.remote_arrive"(%empty, %at#0, %mask) {per = "once"} : (!gpu_tile.barrier, i32, i32) -> ()
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
// CHECK: "gpu_tile.barrier_wait"
// CHECK: name = "load"
// CHECK: name = "compute"
// CHECK-NEXT: return
func.func @one_waits(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %place = "gpu_tile.cluster_position"() {axis = 0 : i32} : () -> i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %first = arith.cmpi eq, %place, %zero : i32
  %some = arith.cmpi slt, %zero, %n : i32
  %free = "gpu_tile.barrier_init"() {count = 2 : i32, options = {offset = 0 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  "gpu_tile.role"() ({
    %true = arith.constant true
    %end:2 = scf.while (%there = %true, %p = %zero, %count = %zero) : (i1, i32, i32) -> (i32, i32) {
      scf.condition(%there) %p, %count : i32, i32
    } do {
    ^bb0(%p: i32, %count: i32):
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
      %other = arith.xori %at#1, %true : i1
      scf.if %first {
        scf.if %some {
          "gpu_tile.barrier_wait"(%free, %at#0, %other) : (!gpu_tile.barrier, i32, i1) -> ()
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
    "gpu_tile.remote_arrive"(%free, %zero, %one) {per = "once"} : (!gpu_tile.barrier, i32, i32) -> ()
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
  %empty = "gpu_tile.barrier_init"() {count = 2 : i32, options = {offset = 0 : i32}, slots = 1 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %true = arith.constant true
    %at:2 = "gpu_tile.ring_position"(%c0) {slots = 1 : i32} : (i32) -> (i32, i1)
    %free = arith.xori %at#1, %true : i1
    "gpu_tile.barrier_wait"(%empty, %at#0, %free) : (!gpu_tile.barrier, i32, i1) -> ()
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    "gpu_tile.remote_arrive"(%empty, %zero, %both) {per = "once"} : (!gpu_tile.barrier, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}
