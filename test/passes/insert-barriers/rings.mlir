// Slots are told apart by their distance from the loop's count.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#row = #gpu_tile.layout<"T(128):(1@0) V():()">
#back = #gpu_tile.layout<"T(4,32):(32@0,1@0) V():()">
!t = tensor<128xf32, #row>
!u = tensor<128xf32, #back>
!b = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!h = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(128):(1)">>
!v = tensor<64xf32, #gpu_tile.layout<"T(2,32,2):(32@0,1@0,0) V():()">>
!m = memref<?xf32, strided<[1]>>
!ring = !gpu_tile.buffer<tensor<3x128xf32>, #gpu_tile.shared<"(128):(1)">>

// One sync: what is read is visible, and what was read an iteration ago may be filled.
// CHECK-LABEL: @two_ahead_of_three
func.func @two_ahead_of_three(%a: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %ahead = arith.constant 2 : i32
  %yes = arith.constant true
  %turns = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !ring
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%count = %i0) -> (i32) {
    // CHECK: gpu_tile.cp_async_wait
    // CHECK: gpu_tile.sync
    // CHECK-NEXT: gpu_tile.buffer_load
    // CHECK-NOT: gpu_tile.sync
    // CHECK: scf.yield
    "gpu_tile.cp_async_wait"() {pending = 1 : i32} : () -> ()
    %p = "gpu_tile.ring_slot"(%turns, %count) : (!gpu_tile.ring, i32) -> i32
    %now = "gpu_tile.slot"(%ring, %p) : (!ring, i32) -> !b
    %r = "gpu_tile.buffer_load"(%now) : (!b) -> !u
    %later = arith.addi %count, %ahead : i32
    %pl = "gpu_tile.ring_slot"(%turns, %later) : (!gpu_tile.ring, i32) -> i32
    %fill = "gpu_tile.slot"(%ring, %pl) : (!ring, i32) -> !b
    "gpu_tile.cp_async"(%a, %fill, %yes, %i) {dims = array<i32: 0>, bytes = 4 : i32, cache = "ca"} : (!m, !b, i1, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    %next = arith.addi %count, %i1 : i32
    scf.yield %next : i32
  }
  return
}

// Three ahead of three is the slot just read: a second sync.
// CHECK-LABEL: @the_slot_in_use
func.func @the_slot_in_use(%a: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %ahead = arith.constant 3 : i32
  %yes = arith.constant true
  %turns = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !ring
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%count = %i0) -> (i32) {
    // CHECK: gpu_tile.sync
    // CHECK-NEXT: gpu_tile.buffer_load
    // CHECK: gpu_tile.sync
    // CHECK-NEXT: "gpu_tile.cp_async"
    // CHECK: scf.yield
    "gpu_tile.cp_async_wait"() {pending = 1 : i32} : () -> ()
    %p = "gpu_tile.ring_slot"(%turns, %count) : (!gpu_tile.ring, i32) -> i32
    %now = "gpu_tile.slot"(%ring, %p) : (!ring, i32) -> !b
    %r = "gpu_tile.buffer_load"(%now) : (!b) -> !u
    %later = arith.addi %count, %ahead : i32
    %pl = "gpu_tile.ring_slot"(%turns, %later) : (!gpu_tile.ring, i32) -> i32
    %fill = "gpu_tile.slot"(%ring, %pl) : (!ring, i32) -> !b
    "gpu_tile.cp_async"(%a, %fill, %yes, %i) {dims = array<i32: 0>, bytes = 4 : i32, cache = "ca"} : (!m, !b, i1, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    %next = arith.addi %count, %i1 : i32
    scf.yield %next : i32
  }
  return
}

// Positions of mbarriers count like turns.
// CHECK-LABEL: @positions
func.func @positions(%a: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %ahead = arith.constant 2 : i32
  %yes = arith.constant true
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !ring
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%count = %i0) -> (i32) {
    // CHECK: gpu_tile.cp_async_wait
    // CHECK: gpu_tile.sync
    // CHECK-NEXT: gpu_tile.buffer_load
    // CHECK-NOT: gpu_tile.sync
    // CHECK: scf.yield
    "gpu_tile.cp_async_wait"() {pending = 1 : i32} : () -> ()
    %p, %q = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
    %now = "gpu_tile.slot"(%ring, %p) : (!ring, i32) -> !b
    %r = "gpu_tile.buffer_load"(%now) : (!b) -> !u
    %later = arith.addi %count, %ahead : i32
    %pl, %ql = "gpu_tile.ring_position"(%later) {slots = 3 : i32} : (i32) -> (i32, i1)
    %fill = "gpu_tile.slot"(%ring, %pl) : (!ring, i32) -> !b
    "gpu_tile.cp_async"(%a, %fill, %yes, %i) {dims = array<i32: 0>, bytes = 4 : i32, cache = "ca"} : (!m, !b, i1, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    %next = arith.addi %count, %i1 : i32
    scf.yield %next : i32
  }
  return
}
