// Combining is the hardware's: what it does not do is refused.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

!m = memref<?x?xf32, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<32x16xf32>, #gpu_tile.shared<"(32,16):(16,1)">>
func.func @largest(%a: !m, %x: i32, %y: i32) attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 32, 16>, dims = array<i32: 0, 1>, swizzle = "none"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @+1 {{tma_store combines with 'max' elements of i32, i64, f16, bf16; found f32}}
  "gpu_tile.tma_store"(%b, %map, %x, %y) {combine = "max"} : (!b, !gpu_tile.tensor_map, i32, i32) -> ()
  return
}

// -----
!m = memref<?x?xi64, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<32x16xi64>, #gpu_tile.shared<"(32,16):(16,1)">>
func.func @sum(%a: !m, %x: i32, %y: i32) attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 32, 16>, dims = array<i32: 0, 1>, swizzle = "none"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @+1 {{tma_store combines with 'add' elements of i32, f32, f16, bf16; found i64}}
  "gpu_tile.tma_store"(%b, %map, %x, %y) {combine = "add"} : (!b, !gpu_tile.tensor_map, i32, i32) -> ()
  return
}

// -----
!m = memref<?x?xf32, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<32x16xf32>, #gpu_tile.shared<"S<3,4,3> o (32,16):(16,1)">>
func.func @narrow_rows(%a: !m, %x: i32, %y: i32) attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 32, 16>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @+1 {{a box of 32x16 does not lie row behind row in the buffer S<3,4,3> o (32,16):(16,1)}}
  "gpu_tile.tma_store"(%b, %map, %x, %y) {combine = "none"} : (!b, !gpu_tile.tensor_map, i32, i32) -> ()
  return
}

// -----
!x = memref<?x?x?xbf16, strided<[?, ?, 1]>>
!b = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
func.func @positions(%x: !x, %i: i32) attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !b
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 64, 64>, dims = array<i32: 0, 2>, extents = ["5"], lower = array<i32: -1>, steps = array<i32: 1>, swizzle = "128B"} : (!x) -> !gpu_tile.tensor_map
  // expected-error @+1 {{one box holds all rows of an im2col map's copy, found 64x64}}
  "gpu_tile.tma_load"(%map, %b, %full, %i, %i, %i, %i, %i) {cache = "normal"} : (!gpu_tile.tensor_map, !b, !gpu_tile.barrier, i32, i32, i32, i32, i32) -> ()
  return
}
