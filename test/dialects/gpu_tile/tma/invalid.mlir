// Every rule of the ops in tma.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!map = !gpu_tile.tensor_map
!six = memref<?x?x?x?x?x?xbf16, strided<[?, ?, ?, ?, ?, 1]>>
func.func @six_dimensions(%a: !six) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op a tensor map has 1 to 5 dimensions, the array has 6}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!six) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @box_without_a_dimension(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op expected one box size per entry of dims, found (128, 64) and (1,)}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 1>, swizzle = "128B"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @dimension_twice(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op 'dims' must name distinct array dimensions, found (1, 1)}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 1, 1>, swizzle = "128B"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @dimension_out_of_range(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op 'dims' must name distinct array dimensions, found (0, 2)}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, swizzle = "128B"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @no_contiguous_dimension(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op the array has no dimension of stride 1 among 'dims'}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64>, dims = array<i32: 0>, swizzle = "none"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @box_too_long(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op box sizes must be 1 to 256, found 257x64}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 257, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @half_a_granule(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op the box must be whole 16 bytes along the row, found 120}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 60>, dims = array<i32: 0, 1>, swizzle = "none"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @wider_than_the_swizzle(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op the box has 128 bytes along the row, more than the swizzle's 64}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "64B"} : (!m) -> !map
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
func.func @unknown_swizzle(%a: !m) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op attribute 'swizzle' must be one of 'none', '32B', '64B', '128B', found "96B"}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "96B"} : (!m) -> !map
  return
}

// -----
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.buffer<tensor<3x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @load_into_a_whole_ring(%map: !map, %s: !ring, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  // expected-error @below {{'gpu_tile.tma_load' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !ring, !bar, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!bad = !gpu_tile.buffer<tensor<128x64xbf16>, i32>
!bar = !gpu_tile.barrier
func.func @load_into_a_malformed_buffer(%map: !map, %s: !bad, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  // expected-error @below {{'gpu_tile.tma_load' op expected a shared-memory buffer, found !gpu_tile.buffer<tensor<128x64xbf16>, i32>}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !bad, !bar, i32, i32, i32) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @too_few_coordinates(%a: !m, %s: !s, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // expected-error @below {{'gpu_tile.tma_load' op expected one coordinate per array dimension (2), found 1}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i) {cache = "normal"} : (!map, !s, !bar, i32, i32) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
!f = !gpu_tile.buffer<tensor<128x64xf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @other_element_type(%a: !m, %s: !f, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // expected-error @below {{'gpu_tile.tma_load' op element types differ: array bf16, buffer f16}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !f, !bar, i32, i32, i32) -> ()
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
!odd = !gpu_tile.buffer<tensor<100x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (100,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @half_a_box(%a: !m, %s: !odd, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // expected-error @below {{'gpu_tile.tma_load' op buffer 100x64 is not made of whole boxes 64x64}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !odd, !bar, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @load_with_an_unknown_hint(%map: !map, %s: !s, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  // expected-error @below {{'gpu_tile.tma_load' op attribute 'cache' must be one of 'normal', 'evict_first', 'evict_last', found "stream"}}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "stream"} : (!map, !s, !bar, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.buffer<tensor<3x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
func.func @store_of_a_whole_ring(%map: !map, %s: !ring, %i: i32, %j: i32) {
  // expected-error @below {{'gpu_tile.tma_store' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "none"} : (!ring, !map, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
func.func @store_that_multiplies(%map: !map, %s: !s, %i: i32, %j: i32) {
  // expected-error @below {{'gpu_tile.tma_store' op attribute 'combine' must be one of 'none', 'add', 'min', 'max', found "mul"}}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "mul"} : (!s, !map, i32, i32) -> ()
  return
}

// -----
func.func @commit_with_an_operand(%i: i32) {
  // expected-error @below {{op expects exactly 0 operands, but got 1}}
  "gpu_tile.tma_commit"(%i) : (i32) -> ()
  return
}

// -----
func.func @wait_for_fewer_than_none() {
  // expected-error @below {{'gpu_tile.tma_wait' op pending must not be negative, found -1}}
  "gpu_tile.tma_wait"() {pending = -1 : i32, read = true} : () -> ()
  return
}

// -----
func.func @wait_read_is_a_number() {
  // expected-error @below {{'gpu_tile.tma_wait' op attribute 'read' must be a boolean, found 1 : i32}}
  "gpu_tile.tma_wait"() {pending = 0 : i32, read = 1 : i32} : () -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!acc = tensor<128x64xbf16, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @warp_store_that_waits_for_fewer_than_none(%map: !map, %s: !s, %x: !acc, %i: i32) {
  // expected-error @below {{'gpu_tile.warp_tma_store' op pending must not be negative, found -1}}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = -1 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}


// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!acc = tensor<128x64xf16, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @warp_store_of_another_tile(%map: !map, %s: !s, %x: !acc, %i: i32) {
  // expected-error @below {{'gpu_tile.warp_tma_store' op the buffer holds another tile than}}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}


// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!acc = tensor<128x64xbf16>
func.func @warp_store_without_a_layout(%map: !map, %s: !s, %x: !acc, %i: i32) {
  // expected-error @below {{'gpu_tile.warp_tma_store' op expected a tile with a #gpu_tile.layout, found no layout}}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}


// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!acc = tensor<128x64xbf16, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @warp_store_of_more_than_a_warp_holds(%c: memref<?x?xbf16, strided<[?, 1]>>, %s: !s, %x: !acc, %i: i32) {
  %map = "gpu_tile.make_tensor_map"(%c) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !map
  // expected-error @below {{'gpu_tile.warp_tma_store' op a warp holds no whole boxes of 128x64}}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}


// -----
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<2x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!acc = tensor<128x64xbf16, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @warp_store_into_a_whole_ring(%map: !map, %s: !s, %x: !acc, %i: i32) {
  // expected-error @below {{'gpu_tile.warp_tma_store' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.buffer<tensor<3x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @multicast_into_a_whole_ring(%map: !map, %s: !ring, %bar: !bar, %slot: i32, %i: i32) {
  // expected-error @below {{'gpu_tile.tma_multicast' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.tma_multicast"(%map, %s, %bar, %slot, %i, %i, %i) {cache = "normal"} : (!map, !ring, !bar, i32, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.buffer<tensor<3x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @pair_multicast_into_a_whole_ring(%map: !map, %s: !ring, %bar: !bar, %slot: i32, %i: i32) {
  // expected-error @below {{'gpu_tile.tma_pair_load' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.tma_pair_load"(%map, %s, %bar, %slot, %i, %i) {cache = "normal"} : (!map, !ring, !bar, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.buffer<tensor<3x128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier
func.func @pairs_multicast_into_a_whole_ring(%map: !map, %s: !ring, %bar: !bar, %slot: i32, %i: i32) {
  // expected-error @below {{'gpu_tile.tma_pair_multicast' op a copy moves one slot of a buffer, not the whole ring}}
  "gpu_tile.tma_pair_multicast"(%map, %s, %bar, %slot, %slot, %i, %i) {cache = "normal"} : (!map, !ring, !bar, i32, i32, i32, i32) -> ()
  return
}

// -----
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
func.func @boxes_of_nothing(%a: memref<?x?xbf16, strided<[?, 1]>>, %s: !b, %bar: !bar, %i: i32) {
  // expected-error @below {{'gpu_tile.make_tensor_map' op box sizes must be 1 to 256, found 0x64}}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 0, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !map
  // expected-error @below {{'gpu_tile.tma_load' op buffer 64x64 is not made of whole boxes 0x64}}
  "gpu_tile.tma_load"(%map, %s, %bar, %i, %i, %i) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32) -> ()
  return
}

// -----
func.func @im2col(%x: memref<?x?xbf16, strided<[?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op an im2col map has 3 to 5 dimensions, the array has 2}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, extents = [], lower = array<i32>, steps = array<i32>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op 'dims' must be dimensions 0 and 2, found (1, 2)}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 1, 2>, extents = ["3"], lower = array<i32: 0>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op 'extents' must have 1 entries, found ('3', '4')}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3", "4"], lower = array<i32: 0>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op 'lower' must have 1 entries, found ()}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3"], lower = array<i32>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op 'lower' must be -32767 to 32767, found (-32768,)}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3"], lower = array<i32: -32768>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op 'steps' must be 1 to 8, found (9,)}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3"], lower = array<i32: 0>, steps = array<i32: 9>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>) {
  // expected-error @below {{'gpu_tile.make_im2col_map' op attribute 'extents' must be an array of strings, found [3]}}
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = [3 : i64], lower = array<i32: 0>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  return
}

// -----
func.func @im2col_coordinates(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>, %s: !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, %bar: !gpu_tile.barrier, %i: i32) {
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3"], lower = array<i32: 0>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  // expected-error @below {{'gpu_tile.tma_load' op expected coordinates and offsets (4), found 3}}
  "gpu_tile.tma_load"(%map, %s, %bar, %i, %i, %i, %i) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.barrier, i32, i32, i32, i32) -> ()
  return
}

// -----
func.func @im2col_store(%x: memref<?x?x?xbf16, strided<[?, ?, 1]>>, %s: !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, %i: i32) {
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 2>, extents = ["3"], lower = array<i32: 0>, steps = array<i32: 1>, swizzle = "128B"} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>) -> !gpu_tile.tensor_map
  // expected-error @below {{'gpu_tile.tma_store' op a map in im2col mode is for loads}}
  "gpu_tile.tma_store"(%s, %map, %i, %i, %i, %i) {combine = "none"} : (!gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>, !gpu_tile.tensor_map, i32, i32, i32, i32) -> ()
  return
}
