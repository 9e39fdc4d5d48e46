// The cluster meets at its end where something reaches a CTA that nobody there waits for. Roles then
// wait for no arrivals of threads, which the meeting orders.
// RUN: tilec opt %s --passes await-arrivals --target sm_100a | filecheck %s

// Nobody acquires slots of the second ring.
// CHECK-LABEL: @unheard
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: name = "compute"
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "acq_rel"}
func.func @unheard(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %c0 = arith.constant 0 : i32
  %both = arith.constant 3 : i32
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  %other = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 24 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c1 = arith.constant 1 : i32
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    %only = "gpu_tile.ring_slot"(%other, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%other, %only, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!slots = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// Of two roles that release slots the second has not waited for what filled them.
// CHECK-LABEL: @unread
// CHECK: name = "stranger"
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "acq_rel"}
func.func @unread(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %c0 = arith.constant 0 : i32
  %both = arith.constant 3 : i32
  %slots = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 24576 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c1 = arith.constant 1 : i32
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      %slot = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
      "gpu_tile.tma_multicast"(%map, %slot, %ring, %at, %both, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.ring, i32, i32, i32, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_wait"(%ring, %c0) {previous = false} : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 5 : i32, name = "reader", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 6 : i32, name = "stranger", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>

// Pairs return their tensor memory together; the end of products is awaited all the same.
// CHECK-LABEL: @pairs
// CHECK: scf.for
// CHECK: scf.for
// CHECK: name = "load"
// CHECK: name = "multiply"
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "acq_rel"}
func.func @pairs(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %c0 = arith.constant 0 : i32
  %both = arith.constant 3 : i32
  %a = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !b
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 1 : i32, options = {offset = 24576 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32, options = {offset = 24600 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 6 : i32} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  "gpu_tile.role"() ({
    %c1 = arith.constant 1 : i32
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %true = arith.constant true
    %at = "gpu_tile.ring_slot"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.tcgen05_mma"(%a, %b, %t, %true) {instruction = "tcgen05.pair.m256n128k16.f32.bf16.bf16"} : (!a, !b, !t, i1) -> ()
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "products"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 6 : i32} : () -> ()
  "gpu_tile.release_tensor_memory"() {columns = 128 : i32} : () -> ()
  return
}

// What is multicast to the second slot again fills no slot that was acquired.
// CHECK-LABEL: @unguarded
// CHECK: name = "reader"
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "acq_rel"}
func.func @unguarded(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %both = arith.constant 3 : i32
  %slots = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 2 : i32, options = {offset = 24576 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %fills = scf.for %i = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      %second = "gpu_tile.ring_slot"(%ring, %c1) : (!gpu_tile.ring, i32) -> i32
      %slot = "gpu_tile.slot"(%slots, %second) : (!slots, i32) -> !slot
      "gpu_tile.tma_multicast"(%map, %slot, %ring, %second, %both, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.ring, i32, i32, i32, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_wait"(%ring, %c1) {previous = false} : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %both) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 5 : i32, name = "reader", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}
