// A role that fills slots waits at its end until products have released them all.
// RUN: tilec opt %s --passes await-arrivals --target sm_100a | filecheck %s

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!slots = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// CHECK-LABEL: @nested
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"
// CHECK: "gpu_tile.role"
// CHECK: %[[FILLS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.for %[[AHEAD:.*]] = %c0_i32{{.*}} to %c3_i32{{.*}} step %c1_i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.addi %[[FILLS]], %[[AHEAD]]
// CHECK-NEXT: "gpu_tile.ring_acquire"(%[[RING]], %[[COUNT]])
// CHECK-NEXT: }
// CHECK: name = "load"
// Who reads waits for what threads and copies announce: nothing more.
// CHECK-NOT: scf.for {{.*}} to %c3_i32
// CHECK: name = "multiply"
func.func @nested(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32, %m: i32) attributes {tile.kernel} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %slots = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 24576 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // A loop over programs; two loops of one program that fill the ring one after the other.
    %fills = scf.for %p = %c0 to %n step %c1 iter_args(%before = %c0) -> (i32) : i32 {
      %some = scf.for %i = %c0 to %m step %c1 iter_args(%count = %before) -> (i32) : i32 {
        %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
        "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!gpu_tile.ring, i32) -> ()
        %slot = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
        "gpu_tile.tma_load"(%map, %slot, %ring, %at, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.ring, i32, i32, i32) -> ()
        %next = arith.addi %count, %c1 : i32
        scf.yield %next : i32
      }
      %all = scf.for %i = %c0 to %m step %c1 iter_args(%count = %some) -> (i32) : i32 {
        %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
        "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!gpu_tile.ring, i32) -> ()
        %slot = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
        "gpu_tile.tma_load"(%map, %slot, %ring, %at, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.ring, i32, i32, i32) -> ()
        %next = arith.addi %count, %c1 : i32
        scf.yield %next : i32
      }
      scf.yield %all : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "products"} : (!gpu_tile.ring, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  return
}

// A branch that counts its turns: the count comes out of it, whether it was taken or not.
// CHECK-LABEL: @branches
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"
// CHECK: %[[FILLS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.if
// CHECK: "gpu_tile.ring_acquire"
// CHECK: scf.for %[[AHEAD:.*]] = %c0_i32{{.*}} to %c3_i32{{.*}} step %c1_i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.addi %[[FILLS]], %[[AHEAD]]
// CHECK-NEXT: "gpu_tile.ring_acquire"(%[[RING]], %[[COUNT]])
// CHECK: name = "load"
func.func @branches(%n: i32, %m: i32) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %fills = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %runs = arith.cmpi slt, %p, %m : i32
      %after = scf.if %runs -> (i32) {
        %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
        "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
        %next = arith.addi %count, %c1 : i32
        scf.yield %next : i32
      } else {
        scf.yield %count : i32
      }
      scf.yield %after : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %runs = arith.cmpi slt, %p, %m : i32
      %after = scf.if %runs -> (i32) {
        %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
        "gpu_tile.ring_release"(%ring, %at) {by = "products"} : (!gpu_tile.ring, i32) -> ()
        %next = arith.addi %count, %c1 : i32
        scf.yield %next : i32
      } else {
        scf.yield %count : i32
      }
      scf.yield %after : i32
    }
    gpu.yield
  }) {first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  return
}

// Slots that threads release: that is behind the thread, and the sync of the end.
// CHECK-LABEL: @threads
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: name = "load"
func.func @threads(%n: i32) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %fills = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %at = "gpu_tile.ring_slot"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
    gpu.yield
  }) {first_warp = 5 : i32, name = "compute", registers = 0 : i32, warps = 1 : i32} : () -> ()
  return
}

// Who waits for the sums that the end of products publishes has waited for all of them.
// CHECK-LABEL: @sums
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: name = "compute"
func.func @sums(%n: i32) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %at = "gpu_tile.ring_slot"(%ring, %c0) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_publish"(%ring, %at) {by = "products"} : (!gpu_tile.ring, i32) -> ()
    gpu.yield
  }) {first_warp = 4 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  return
}
