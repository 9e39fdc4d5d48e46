// Rings, turns and slots, printed as they were read.
// RUN: %roundtrip

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>

// CHECK-LABEL: @filled_and_emptied
func.func @filled_and_emptied(%count: i32) {
  // CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 2 : i32, slots = 3 : i32} : () -> !gpu_tile.ring
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 2 : i32, options = {}} : () -> !ring
  // CHECK: %[[FREE:.*]] = "gpu_tile.ring_acquire"(%[[RING]], %{{.*}}) : (!gpu_tile.ring, i32) -> i32
  %free = "gpu_tile.ring_acquire"(%ring, %count) : (!ring, i32) -> i32
  // CHECK: "gpu_tile.ring_announce"(%[[RING]], %[[FREE]]) {bytes = 32768 : i32} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_announce"(%ring, %free) {bytes = 32768 : i32} : (!ring, i32) -> ()
  // CHECK: %[[FULL:.*]] = "gpu_tile.ring_wait"(%[[RING]], %{{.*}}) {previous = false} : (!gpu_tile.ring, i32) -> i32
  %full = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!ring, i32) -> i32
  // CHECK: "gpu_tile.ring_release"(%[[RING]], %[[FULL]]) {by = "warpgroup"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %full) {by = "warpgroup"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_wait"(%[[RING]], %{{.*}}) {previous = true} : (!gpu_tile.ring, i32) -> i32
  %before = "gpu_tile.ring_wait"(%ring, %count) {previous = true} : (!ring, i32) -> i32
  return
}

// The most arrivals that an mbarrier counts; an address.
// CHECK-LABEL: @limits
func.func @limits(%count: i32) {
  // CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1048575 : i32, options = {offset = 8 : i32}, releases = 1048575 : i32, slots = 1 : i32}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1048575 : i32, releases = 1048575 : i32, options = {offset = 8 : i32}} : () -> !ring
  %slot = "gpu_tile.ring_acquire"(%ring, %count) : (!ring, i32) -> i32
  // CHECK: "gpu_tile.ring_announce"(%[[RING]], %{{.*}}) {bytes = 1048575 : i32}
  "gpu_tile.ring_announce"(%ring, %slot) {bytes = 1048575 : i32} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_announce"(%[[RING]], %{{.*}}) {bytes = 1 : i32}
  "gpu_tile.ring_announce"(%ring, %slot) {bytes = 1 : i32} : (!ring, i32) -> ()
  return
}

// Nobody counts either side: turns have slots all the same.
// CHECK-LABEL: @ordered_by_something_else
func.func @ordered_by_something_else(%count: i32) {
  // CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 0 : i32, options = {}, releases = 0 : i32, slots = 4 : i32}
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 0 : i32, releases = 0 : i32, options = {}} : () -> !ring
  // CHECK: "gpu_tile.ring_slot"(%[[RING]], %{{.*}}) : (!gpu_tile.ring, i32) -> i32
  %slot = "gpu_tile.ring_slot"(%ring, %count) : (!ring, i32) -> i32
  return
}

// CHECK-LABEL: @everybody
func.func @everybody(%count: i32, %mask: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 128 : i32, releases = 128 : i32, options = {}} : () -> !ring
  %slot = "gpu_tile.ring_slot"(%ring, %count) : (!ring, i32) -> i32
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "thread"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "thread"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}, %arg1) {by = "thread"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot, %mask) {by = "thread"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}, %arg1) {by = "warp"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot, %mask) {by = "warp"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "warpgroup"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "warpgroup"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}, %arg1) {by = "warpgroup"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot, %mask) {by = "warpgroup"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "once"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "once"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}, %arg1) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot, %mask) {by = "once"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "copies"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "copies"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}) {by = "products"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot) {by = "products"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_publish"(%{{.*}}, %{{.*}}, %arg1) {by = "products"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_publish"(%ring, %slot, %mask) {by = "products"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "thread"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot) {by = "thread"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}, %arg1) {by = "thread"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot, %mask) {by = "thread"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}, %arg1) {by = "warp"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot, %mask) {by = "warp"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "warpgroup"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot) {by = "warpgroup"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}, %arg1) {by = "warpgroup"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot, %mask) {by = "warpgroup"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "once"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot) {by = "once"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}, %arg1) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot, %mask) {by = "once"} : (!ring, i32, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "products"} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot) {by = "products"} : (!ring, i32) -> ()
  // CHECK: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}, %arg1) {by = "products"} : (!gpu_tile.ring, i32, i32) -> ()
  "gpu_tile.ring_release"(%ring, %slot, %mask) {by = "products"} : (!ring, i32, i32) -> ()
  return
}

// What brings bytes names the ring that counts them.
// CHECK-LABEL: @counted_by_a_ring
func.func @counted_by_a_ring(%map: !gpu_tile.tensor_map, %s: !slot, %answer: !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, %count: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !ring
  %slot = "gpu_tile.ring_acquire"(%ring, %count) : (!ring, i32) -> i32
  // CHECK: "gpu_tile.tma_load"({{.*}}) {cache = "normal"} : (!gpu_tile.tensor_map, {{.*}}, !gpu_tile.ring, i32, i32, i32) -> ()
  "gpu_tile.tma_load"(%map, %s, %ring, %slot, %count, %count) {cache = "normal"} : (!gpu_tile.tensor_map, !slot, !ring, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.next_program"({{.*}}, !gpu_tile.ring, i32) -> ()
  "gpu_tile.next_program"(%answer, %ring, %slot) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, !ring, i32) -> ()
  return
}

// CHECK-LABEL: @slot_of_an_iteration
func.func @slot_of_an_iteration(%all: !slots, %count: i32) {
  // CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = 3 : i32} : (i32) -> (i32, i1)
  %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
  // CHECK: "gpu_tile.slot"(%{{.*}}, %[[P]]#0) : (!gpu_tile.buffer<tensor<3x64x64xf32>, {{.*}}>, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
  %s = "gpu_tile.slot"(%all, %slot) : (!slots, i32) -> !slot
  return
}

// CHECK-LABEL: @swizzled_ring_of_one
func.func @swizzled_ring_of_one(%i: i32) {
  // CHECK: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  %ring = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  %s = "gpu_tile.slot"(%ring, %i) : (!gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>, i32) -> !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  return
}
