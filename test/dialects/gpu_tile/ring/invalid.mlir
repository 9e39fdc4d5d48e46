// Every rule of rings of buffers.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @position_in_a_ring_of_no_slots(%count: i32) {
  // expected-error @below {{'gpu_tile.ring_position' op slots must be positive, found 0}}
  %i, %parity = "gpu_tile.ring_position"(%count) {slots = 0 : i32} : (i32) -> (i32, i1)
  return
}

// -----
!one = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @slot_of_a_plain_buffer(%b: !one, %i: i32) {
  // expected-error-re @below {{'gpu_tile.slot' op expected a ring of buffers, found !gpu_tile.buffer<tensor<64xf32>, .*>}}
  %s = "gpu_tile.slot"(%b, %i) : (!one, i32) -> !one
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @slot_keeps_the_ring(%b: !ring, %i: i32) {
  // expected-error-re @below {{'gpu_tile.slot' op result must be !gpu_tile.buffer<tensor<64xf32>, .*>}}
  %s = "gpu_tile.slot"(%b, %i) : (!ring, i32) -> !ring
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x64xf32>, #gpu_tile.shared<"64:1">>
func.func @slot_of_a_malformed_ring(%b: !ring, %i: i32) {
  // expected-error @below {{'gpu_tile.slot' op malformed shared layout '64:1'}}
  %s = "gpu_tile.slot"(%b, %i) : (!ring, i32) -> !ring
  return
}
