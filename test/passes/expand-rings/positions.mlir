// Turns of one count share a position, where one stands in front of the other or around it; where
// slots lie is computed in front of the wait for them.
// RUN: tilec opt %s --passes expand-rings --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<3x128xf32>, #gpu_tile.shared<"(128):(1)">>
!s = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>

// Two rings of three slots, one of two.
// CHECK-LABEL: @two_rings
// CHECK: %[[A:.*]] = "gpu_tile.barrier_init"() {{.*}}offset = 4096
// CHECK-NEXT: %[[B:.*]] = "gpu_tile.barrier_init"() {{.*}}offset = 4120
// CHECK-NEXT: %[[C:.*]] = "gpu_tile.barrier_init"() {{.*}}offset = 4144
// CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 3 : i32}
// CHECK-NEXT: %[[X:.*]] = "gpu_tile.slot"(%{{.*}}, %[[P]]#0)
// CHECK-NEXT: %[[Y:.*]] = "gpu_tile.slot"(%{{.*}}, %[[P]]#0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[A]], %[[P]]#0, %[[P]]#1)
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[X]])
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[B]], %[[P]]#0, %[[P]]#1)
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[Y]])
// CHECK-NEXT: %[[Q:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 2 : i32}
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[C]], %[[Q]]#0, %[[Q]]#1)
// Another count.
// CHECK-NEXT: %[[R:.*]]:2 = "gpu_tile.ring_position"(%arg1) {slots = 3 : i32}
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[A]], %[[R]]#0, %[[R]]#1)
// CHECK-NEXT: return
func.func @two_rings(%n: i32, %m: i32) attributes {tile.kernel} {
  %a = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 4096 : i32}} : () -> !ring
  %b = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 4120 : i32}} : () -> !ring
  %c = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 4144 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %own = "gpu_tile.alloc"() {options = {offset = 2048 : i32}} : () -> !slots
  %at = "gpu_tile.ring_wait"(%a, %n) {previous = false} : (!ring, i32) -> i32
  %x = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
  %y = "gpu_tile.slot"(%own, %at) : (!slots, i32) -> !s
  %u = "gpu_tile.buffer_load"(%x) : (!s) -> !t
  %too = "gpu_tile.ring_wait"(%b, %n) {previous = false} : (!ring, i32) -> i32
  %v = "gpu_tile.buffer_load"(%y) : (!s) -> !t
  %two = "gpu_tile.ring_wait"(%c, %n) {previous = false} : (!ring, i32) -> i32
  %other = "gpu_tile.ring_wait"(%a, %m) {previous = false} : (!ring, i32) -> i32
  return
}

// -----
!ring = !gpu_tile.ring

// A turn inside of a loop or branch takes the position in front of it; one of a branch, or of a role,
// serves nobody behind it or beside it.
// CHECK-LABEL: @nested
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"
// CHECK-NEXT: %[[FREE:.*]] = "gpu_tile.barrier_init"
// CHECK: "gpu_tile.role"
// CHECK-NEXT: %[[P:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 3 : i32}
// CHECK-NEXT: "gpu_tile.barrier_expect"(%[[FULL]], %[[P]]#0) {bytes = 16 : i32}
// CHECK-NEXT: scf.if
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.constant true
// CHECK-NEXT: %[[BEFORE:.*]] = arith.xori %[[P]]#1
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FREE]], %[[P]]#0, %[[BEFORE]])
// CHECK: name = "load"
// CHECK: scf.if
// CHECK-NEXT: %[[Q:.*]]:2 = "gpu_tile.ring_position"(%arg0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FULL]], %[[Q]]#0, %[[Q]]#1)
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[R:.*]]:2 = "gpu_tile.ring_position"(%arg0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[FULL]], %[[R]]#0, %[[R]]#1)
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]]:2 = "gpu_tile.ring_position"(%arg0)
// CHECK-NEXT: "gpu_tile.barrier_arrive"(%[[FREE]], %[[S]]#0) {per = "once"}
// CHECK: name = "compute"
func.func @nested(%n: i32, %yes: i1, %low: i32, %high: i32) attributes {tile.kernel, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 0 : i32}} : () -> !ring
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
    "gpu_tile.ring_announce"(%ring, %at) {bytes = 16 : i32} : (!ring, i32) -> ()
    scf.if %yes {
      scf.for %i = %low to %high step %n : i32 {
        %free = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      }
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.if %yes {
      %full = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
    } else {
      %full = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
    }
    %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at) {by = "once"} : (!ring, i32) -> ()
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring

// Full the turn before: the other parity of the same position.
// CHECK-LABEL: @previous
// CHECK: %[[DONE:.*]] = "gpu_tile.barrier_init"
// CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%arg0) {slots = 1 : i32}
// CHECK-NEXT: arith.constant true
// CHECK-NEXT: %[[BEFORE:.*]] = arith.xori %[[P]]#1
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[DONE]], %[[P]]#0, %[[BEFORE]])
// CHECK-NEXT: "gpu_tile.tcgen05_commit"(%[[DONE]], %[[P]]#0)
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[DONE]], %[[P]]#0, %[[P]]#1)
// CHECK-NEXT: return
func.func @previous(%n: i32) attributes {tile.kernel} {
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !ring
  %before = "gpu_tile.ring_wait"(%done, %n) {previous = true} : (!ring, i32) -> i32
  %at = "gpu_tile.ring_slot"(%done, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_publish"(%done, %at) {by = "products"} : (!ring, i32) -> ()
  %now = "gpu_tile.ring_wait"(%done, %n) {previous = false} : (!ring, i32) -> i32
  return
}
