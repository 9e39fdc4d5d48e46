// A role that fills slots waits at its end for the commits that give them back.
// RUN: tilec opt %s --passes await-arrivals --target sm_100a | filecheck %s

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!ring = !gpu_tile.buffer<tensor<3x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// CHECK-LABEL: @nested
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"
// CHECK: %[[EMPTY:.*]] = "gpu_tile.barrier_init"
// CHECK: "gpu_tile.role"
// CHECK: %[[FILLS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.for %[[AHEAD:.*]] = %c0_i32{{.*}} to %c3_i32{{.*}} step %c1_i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.addi %[[FILLS]], %[[AHEAD]]
// CHECK-NEXT: %[[AT:.*]]:2 = "gpu_tile.ring_position"(%[[COUNT]]) {slots = 3 : i32}
// CHECK: %[[FREE:.*]] = arith.xori %[[AT]]#1
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[EMPTY]], %[[AT]]#0, %[[FREE]])
// CHECK: name = "load"
// Who reads waits for what threads and copies announce: nothing more.
// CHECK-NOT: scf.for {{.*}} to %c3_i32
// CHECK: name = "multiply"
func.func @nested(%x: memref<?x?xbf16, strided<[?, 1]>>, %n: i32, %m: i32) attributes {tile.kernel} {
  %map = "gpu_tile.make_tensor_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !ring
  %full = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 24576 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  %empty = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 24600 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    // A loop over programs; two loops of one program that fill the ring one after the other.
    %fills = scf.for %p = %c0 to %n step %c1 iter_args(%before = %c0) -> (i32) : i32 {
      %some = scf.for %i = %c0 to %m step %c1 iter_args(%count = %before) -> (i32) : i32 {
        %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
        %free = arith.xori %at#1, %true : i1
        "gpu_tile.barrier_wait"(%empty, %at#0, %free) : (!gpu_tile.barrier, i32, i1) -> ()
        "gpu_tile.barrier_expect"(%full, %at#0) {bytes = 8192 : i32} : (!gpu_tile.barrier, i32) -> ()
        %slot = "gpu_tile.slot"(%ring, %at#0) : (!ring, i32) -> !slot
        "gpu_tile.tma_load"(%map, %slot, %full, %at#0, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.barrier, i32, i32, i32) -> ()
        %next = arith.addi %count, %c1 : i32
        scf.yield %next : i32
      }
      %all = scf.for %i = %c0 to %m step %c1 iter_args(%count = %some) -> (i32) : i32 {
        %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
        %free = arith.xori %at#1, %true : i1
        "gpu_tile.barrier_wait"(%empty, %at#0, %free) : (!gpu_tile.barrier, i32, i1) -> ()
        "gpu_tile.barrier_expect"(%full, %at#0) {bytes = 8192 : i32} : (!gpu_tile.barrier, i32) -> ()
        %slot = "gpu_tile.slot"(%ring, %at#0) : (!ring, i32) -> !slot
        "gpu_tile.tma_load"(%map, %slot, %full, %at#0, %c0, %c0) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !gpu_tile.barrier, i32, i32, i32) -> ()
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
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
      "gpu_tile.barrier_wait"(%full, %at#0, %at#1) : (!gpu_tile.barrier, i32, i1) -> ()
      "gpu_tile.tcgen05_commit"(%empty, %at#0) : (!gpu_tile.barrier, i32) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  return
}

// Slots that threads give back: their arrivals are behind the thread, and the sync of the end.
// CHECK-LABEL: @threads
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: name = "load"
func.func @threads(%n: i32) attributes {tile.kernel} {
  %empty = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 0 : i32}, slots = 3 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %fills = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
      %free = arith.xori %at#1, %true : i1
      "gpu_tile.barrier_wait"(%empty, %at#0, %free) : (!gpu_tile.barrier, i32, i1) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    "gpu_tile.barrier_arrive"(%empty, %c0) {per = "warp"} : (!gpu_tile.barrier, i32) -> ()
    gpu.yield
  }) {first_warp = 5 : i32, name = "compute", registers = 0 : i32, warps = 1 : i32} : () -> ()
  return
}

// Who waits for the sums that a commit announces has waited for all of them.
// CHECK-LABEL: @sums
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: name = "compute"
func.func @sums(%n: i32) attributes {tile.kernel} {
  %ready = "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 0 : i32}, slots = 2 : i32} : () -> !gpu_tile.barrier
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    "gpu_tile.tcgen05_commit"(%ready, %c0) : (!gpu_tile.barrier, i32) -> ()
    gpu.yield
  }) {first_warp = 4 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %uses = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (i32) : i32 {
      %at:2 = "gpu_tile.ring_position"(%count) {slots = 2 : i32} : (i32) -> (i32, i1)
      "gpu_tile.barrier_wait"(%ready, %at#0, %at#1) : (!gpu_tile.barrier, i32, i1) -> ()
      %next = arith.addi %count, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  return
}
