// Every rule of the ops in ring.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @no_slots(%n: i32) {
  // expected-error @below {{'gpu_tile.ring_position' op slots must be positive, found 0}}
  %s, %p = "gpu_tile.ring_position"(%n) {slots = 0 : i32} : (i32) -> (i32, i1)
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @more_slots_than_the_ring(%ring: !ring, %n: i32) {
  // expected-error @below {{'gpu_tile.ring_position' op counts 4 slots, 'gpu_tile.slot' has a ring of 3}}
  %i, %p = "gpu_tile.ring_position"(%n) {slots = 4 : i32} : (i32) -> (i32, i1)
  %s = "gpu_tile.slot"(%ring, %i) : (!ring, i32) -> !slot
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
!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_a_plain_buffer(%b: !slot, %i: i32) {
  // expected-error @below {{'gpu_tile.slot' op expected a ring of buffers, found}}
  %s = "gpu_tile.slot"(%b, %i) : (!slot, i32) -> !slot
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_of_another_type(%b: !ring, %i: i32) {
  // expected-error @below {{'gpu_tile.slot' op result must be !gpu_tile.buffer<tensor<64x64xf32>}}
  %s = "gpu_tile.slot"(%b, %i) : (!ring, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @slot_without_a_number(%b: !ring) {
  // expected-error @below {{op expects exactly 2 operands, but got 1}}
  %s = "gpu_tile.slot"(%b) : (!ring) -> !slot
  return
}
