// Every rule of the ops in ring.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @no_slots_at_all() {
  // expected-error @below {{'gpu_tile.make_ring' op slots must be positive, found 0}}
  %ring = "gpu_tile.make_ring"() {slots = 0 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @fewer_than_no_fills() {
  // expected-error @below {{'gpu_tile.make_ring' op fills must be 0 to 1048575, found -1}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = -1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @too_many_fills() {
  // expected-error @below {{'gpu_tile.make_ring' op fills must be 0 to 1048575, found 1048576}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1048576 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @fewer_than_no_releases() {
  // expected-error @below {{'gpu_tile.make_ring' op releases must be 0 to 1048575, found -1}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = -1 : i32, options = {}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @too_many_releases() {
  // expected-error @below {{'gpu_tile.make_ring' op releases must be 0 to 1048575, found 1048576}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1048576 : i32, options = {}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @offset_in_a_barrier() {
  // expected-error @below {{'gpu_tile.make_ring' op offset 12 is no multiple of 8}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 12 : i32}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @offset_below_zero() {
  // expected-error @below {{'gpu_tile.make_ring' op offset -8 is no multiple of 8}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = -8 : i32}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @unknown_option() {
  // expected-error @below {{'gpu_tile.make_ring' op attribute 'options' has the unknown option 'scope'; known: offset}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {scope = "cluster"}} : () -> !gpu_tile.ring
  return
}

// -----
func.func @makes_a_number() {
  // expected-error @below {{expected base type 'gpu_tile.ring' but got}}
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> i32
  return
}

// -----
func.func @ring_slot_of_a_wide_count(%n: i64) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{expected 'i32' but got 'i64'}}
  %slot = "gpu_tile.ring_slot"(%ring, %n) : (!gpu_tile.ring, i64) -> i32
  return
}

// -----
func.func @ring_slot_of_a_barrier(%b: !gpu_tile.barrier, %n: i32) {
  // expected-error @below {{expected base type 'gpu_tile.ring' but got}}
  %slot = "gpu_tile.ring_slot"(%b, %n) : (!gpu_tile.barrier, i32) -> i32
  return
}

// -----
func.func @ring_acquire_of_a_wide_count(%n: i64) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{expected 'i32' but got 'i64'}}
  %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!gpu_tile.ring, i64) -> i32
  return
}

// -----
func.func @ring_acquire_of_a_barrier(%b: !gpu_tile.barrier, %n: i32) {
  // expected-error @below {{expected base type 'gpu_tile.ring' but got}}
  %slot = "gpu_tile.ring_acquire"(%b, %n) : (!gpu_tile.barrier, i32) -> i32
  return
}

// -----
func.func @ring_wait_of_a_wide_count(%n: i64) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{expected 'i32' but got 'i64'}}
  %slot = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!gpu_tile.ring, i64) -> i32
  return
}

// -----
func.func @ring_wait_of_a_barrier(%b: !gpu_tile.barrier, %n: i32) {
  // expected-error @below {{expected base type 'gpu_tile.ring' but got}}
  %slot = "gpu_tile.ring_wait"(%b, %n) {previous = false} : (!gpu_tile.barrier, i32) -> i32
  return
}

// -----
func.func @nobody_releases(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_acquire' op nobody releases slots of this ring}}
  %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @nobody_publishes(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 0 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_wait' op nobody publishes slots of this ring}}
  %slot = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @previous_is_a_number(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_wait' op attribute 'previous' must be a boolean, found 1 : i32}}
  %slot = "gpu_tile.ring_wait"(%ring, %n) {previous = 1 : i32} : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @nothing_announced(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_announce' op bytes must be 1 to 1048575, found 0}}
  "gpu_tile.ring_announce"(%ring, %n) {bytes = 0 : i32} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @too_much_announced(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_announce' op bytes must be 1 to 1048575, found 1048576}}
  "gpu_tile.ring_announce"(%ring, %n) {bytes = 1048576 : i32} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @published_by_strangers(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_publish' op attribute 'by' must be one of 'thread', 'warp', 'warpgroup', 'once', 'copies', 'products', found "cta"}}
  "gpu_tile.ring_publish"(%ring, %n) {by = "cta"} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @copies_elsewhere(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_publish' op copies arrive in their own CTA}}
  "gpu_tile.ring_publish"(%ring, %n, %n) {by = "copies"} : (!gpu_tile.ring, i32, i32) -> ()
  return
}

// -----
func.func @released_by_copies(%n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{'gpu_tile.ring_release' op attribute 'by' must be one of 'thread', 'warp', 'warpgroup', 'once', 'products', found "copies"}}
  "gpu_tile.ring_release"(%ring, %n) {by = "copies"} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @mask_of_64_bits(%n: i32, %m: i64) {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  // expected-error @below {{expected 'i32' but got 'i64'}}
  "gpu_tile.ring_release"(%ring, %n, %m) {by = "warp"} : (!gpu_tile.ring, i32, i64) -> ()
  return
}

// -----
func.func @copy_that_nobody_counts(%map: !gpu_tile.tensor_map, %s: !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>, %n: i32) {
  // expected-error @below {{'gpu_tile.tma_load' op 'barrier' must be mbarriers or a ring, found i32}}
  "gpu_tile.tma_load"(%map, %s, %n, %n, %n, %n) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>, i32, i32, i32, i32) -> ()
  return
}

// -----
func.func @request_that_nobody_counts(%a: !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, %n: i32) {
  // expected-error @below {{'gpu_tile.next_program' op 'barrier' must be mbarriers or a ring, found i32}}
  "gpu_tile.next_program"(%a, %n, %n) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, i32, i32) -> ()
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @no_slots(%n: i32) {
  // expected-error @below {{'gpu_tile.ring_position' op slots must be positive, found 0}}
  %s, %p = "gpu_tile.ring_position"(%n) {slots = 0 : i32} : (i32) -> (i32, i1)
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @more_slots_than_the_ring(%ring: !slots, %n: i32) {
  // expected-error @below {{'gpu_tile.ring_position' op counts 4 slots, 'gpu_tile.slot' has a ring of 3}}
  %i, %p = "gpu_tile.ring_position"(%n) {slots = 4 : i32} : (i32) -> (i32, i1)
  %s = "gpu_tile.slot"(%ring, %i) : (!slots, i32) -> !slot
  return
}

// -----
func.func @more_slots_than_barriers(%n: i32) {
  %full = "gpu_tile.barrier_init"() {slots = 3 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
  // expected-error @below {{'gpu_tile.ring_position' op counts 4 slots, 'gpu_tile.barrier_wait' has a ring of 3}}
  %i, %p = "gpu_tile.ring_position"(%n) {slots = 4 : i32} : (i32) -> (i32, i1)
  "gpu_tile.barrier_wait"(%full, %i, %p) : (!gpu_tile.barrier, i32, i1) -> ()
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @count_is_an_index(%n: index) {
  // expected-error @below {{expected 'i32' but got 'index'}}
  %s, %p = "gpu_tile.ring_position"(%n) {slots = 3 : i32} : (index) -> (i32, i1)
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_a_plain_buffer(%b: !slot, %i: i32) {
  // expected-error @below {{'gpu_tile.slot' op expected a ring of buffers, found}}
  %s = "gpu_tile.slot"(%b, %i) : (!slot, i32) -> !slot
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_another_type(%b: !slots, %i: i32) {
  // expected-error @below {{'gpu_tile.slot' op result must be !gpu_tile.buffer<tensor<64x64xf32>}}
  %s = "gpu_tile.slot"(%b, %i) : (!slots, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_without_a_number(%b: !slots) {
  // expected-error @below {{op expects exactly 2 operands, but got 1}}
  %s = "gpu_tile.slot"(%b) : (!slots) -> !slot
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_a_longer_ring(%b: !slots, %n: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  %i = "gpu_tile.ring_slot"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  // expected-error @below {{'gpu_tile.slot' op the buffer has 3 slots, the ring 4}}
  %s = "gpu_tile.slot"(%b, %i) : (!slots, i32) -> !slot
  return
}

// -----
!slots = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_a_ring_without_a_number(%b: !slots, %n: i32) {
  // expected-error @below {{'gpu_tile.make_ring' op attribute 'slots' }}
  %ring = "gpu_tile.make_ring"() {slots = "word", fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  %i = "gpu_tile.ring_slot"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  %s = "gpu_tile.slot"(%b, %i) : (!slots, i32) -> !slot
  return
}
