// Every rule of asynchronous copies.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_offset_missing(%a: memref<?x?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op expected one offset per array dimension (2), found 1}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xf16>, !rows, i1, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_dims_missing(%a: memref<?x?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op 'dims' must name one array dimension per buffer dimension (2)}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xf16>, !rows, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_dim_out_of_range(%a: memref<?x?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op 'dims' must name one array dimension per buffer dimension (2)}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 1, 2>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xf16>, !rows, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_of_another_element_type(%a: memref<?x?xbf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op element types differ: array bf16, buffer f16}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xbf16>, !rows, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_of_two_bytes(%a: memref<?x?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op bytes must be 4, 8 or 16 and whole elements, found 2}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 2 : i32, cache = "ca"} : (memref<?x?xf16>, !rows, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf64>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_of_half_an_element(%a: memref<?x?xf64>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op bytes must be 4, 8 or 16 and whole elements, found 4}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 4 : i32, cache = "ca"} : (memref<?x?xf64>, !rows, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_past_l1_of_eight_bytes(%a: memref<?x?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op cache 'cg' copies 16 bytes, found 8}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 8 : i32, cache = "cg"} : (memref<?x?xf16>, !rows, i1, index, index) -> ()
  return
}

// -----
!ring = !gpu_tile.buffer<tensor<3x16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>
func.func @copy_into_a_whole_ring(%a: memref<?x?xf16>, %s: !ring, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op a copy fills one slot of a buffer, not the whole ring}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 8 : i32, cache = "ca"} : (memref<?x?xf16>, !ring, i1, index, index) -> ()
  return
}

// -----
!rows = !gpu_tile.buffer<tensor<16xf16>, #gpu_tile.shared<"(16)">>
func.func @copy_into_a_malformed_buffer(%a: memref<?xf16>, %s: !rows, %yes: i1, %i: index) {
  // expected-error @below {{'gpu_tile.cp_async' op malformed shared layout '(16)'; expected e.g. '(128,64):(64,1)'}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i) {dims = array<i32: 0>, bytes = 8 : i32, cache = "ca"} : (memref<?xf16>, !rows, i1, index) -> ()
  return
}

// -----
func.func @commit_with_an_operand(%i: index) {
  // expected-error @below {{op expects exactly 0 operands, but got 1}}
  "gpu_tile.cp_async_commit"(%i) : (index) -> ()
  return
}

// -----
func.func @wait_for_a_negative_number() {
  // expected-error @below {{'gpu_tile.cp_async_wait' op pending must not be negative, found -1}}
  "gpu_tile.cp_async_wait"() {pending = -1 : i32} : () -> ()
  return
}
