// Every rule of the ops in async_copy.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!ring = !gpu_tile.buffer<tensor<3x16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @into_a_whole_ring(%a: !m, %s: !ring, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op a copy fills one slot of a buffer, not the whole ring}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !ring, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @too_few_offsets(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op expected one offset per array dimension (2), found 1}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @too_few_dims(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op 'dims' must name one array dimension per buffer dimension (2)}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @dims_out_of_range(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op 'dims' must name one array dimension per buffer dimension (2)}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 2>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!f = !gpu_tile.buffer<tensor<16x64xf32>, #gpu_tile.shared<"(16,64):(64,1)">>
func.func @other_element_type(%a: !m, %s: !f, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op element types differ: array bf16, buffer f32}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !f, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @two_bytes(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op bytes must be 4, 8 or 16 and whole elements, found 2}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 2 : i32, cache = "ca"} : (!m, !s, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!n = memref<?x?xf64, strided<[?, 1]>>
!d = !gpu_tile.buffer<tensor<16x64xf64>, #gpu_tile.shared<"(16,64):(64,1)">>
func.func @half_an_element(%a: !n, %s: !d, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op bytes must be 4, 8 or 16 and whole elements, found 4}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 4 : i32, cache = "ca"} : (!n, !d, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @eight_bytes_past_l1(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op cache 'cg' copies 16 bytes, found 8}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 8 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @unknown_cache(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // expected-error @below {{'gpu_tile.cp_async' op attribute 'cache' must be one of 'ca', 'cg', found "cs"}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 8 : i32, cache = "cs"} : (!m, !s, i1, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @mask_is_a_tile(%a: !m, %s: !s, %yes: tensor<16xi1>, %i: index, %j: index) {
  // expected-error @below {{expected 'i1' but got 'tensor<16xi1>'}}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !s, tensor<16xi1>, index, index) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @wait_for_a_negative_number() {
  // expected-error @below {{'gpu_tile.cp_async_wait' op pending must not be negative, found -1}}
  "gpu_tile.cp_async_wait"() {pending = -1 : i32} : () -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @wait_without_a_number() {
  // expected-error @below {{'gpu_tile.cp_async_wait' op attribute "pending" is expected but not provided}}
  "gpu_tile.cp_async_wait"() : () -> ()
  return
}

// -----
func.func @commit_with_an_operand(%i: index) {
  // expected-error @below {{op expects exactly 0 operands, but got 1}}
  "gpu_tile.cp_async_commit"(%i) : (index) -> ()
  return
}

// -----
func.func @arrive_at_a_buffer(%s: !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>, %slot: i32) {
  // expected-error @below {{expected base type 'gpu_tile.barrier' but got}}
  "gpu_tile.cp_async_arrive"(%s, %slot) : (!gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>, i32) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
!ring = !gpu_tile.buffer<tensor<3x16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
func.func @gather_into_a_whole_ring(%a: !m, %s: !ring, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op a copy fills one slot of a buffer, not the whole ring}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 16 : i32, cache = "cg"} : (!m, !ring, i1, !ok, !i, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
!h = !gpu_tile.buffer<tensor<8x64xbf16>, #gpu_tile.shared<"(8,64):(72,1)">>
func.func @gather_of_another_shape(%a: !m, %s: !h, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op elements are 16x64, the buffer 8x64}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 16 : i32, cache = "cg"} : (!m, !h, i1, !ok, !i, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
func.func @gather_by_no_mask(%a: !m, %s: !s, %yes: i1, %ok: !i, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op mask must hold i1, found i32}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, !i, !i, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
func.func @gather_by_too_few_indices(%a: !m, %s: !s, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op expected one index tile per array dimension (2), found 1}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i) {bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, !ok, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
!f = memref<?x?xf32, strided<[?, 1]>>
func.func @gather_of_other_elements(%a: !f, %s: !s, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op element types differ: array f32, buffer bf16}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 16 : i32, cache = "cg"} : (!f, !s, i1, !ok, !i, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
func.func @gather_two_bytes(%a: !m, %s: !s, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op bytes must be 4, 8 or 16 and whole elements, found 2}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 2 : i32, cache = "ca"} : (!m, !s, i1, !ok, !i, !i) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(72,1)">>
!i = tensor<16x64xi32>
!ok = tensor<16x64xi1>
func.func @gather_eight_bytes_past_l1(%a: !m, %s: !s, %yes: i1, %ok: !ok, %i: !i, %j: !i) {
  // expected-error @below {{'gpu_tile.cp_async_gather' op cache 'cg' copies 16 bytes, found 8}}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 8 : i32, cache = "cg"} : (!m, !s, i1, !ok, !i, !i) -> ()
  return
}
