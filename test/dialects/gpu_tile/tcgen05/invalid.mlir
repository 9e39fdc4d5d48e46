// Every rule of the ops in tcgen05.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @unknown_instruction(%a: !a, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op unknown instruction 'tcgen05.m128n72k16.f32.bf16.bf16'}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n72k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @instruction_of_a_warp(%a: !a, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op mma.m16n8k16.f32.bf16.bf16 is no instruction of tensor memory}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.shared<"(128,64):(64,1)">>
func.func @accumulator_in_shared_memory(%a: !a, %b: !b, %acc: !s, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op expected a buffer in tensor memory, found !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.shared}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !s, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @rhs_in_tensor_memory(%a: !a, %b: !acc, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op expected a shared-memory buffer, found !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !acc, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @a_ring(%a: !a, %b: !b, %acc: !s, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op operands are one slot each, found 128x64, 64x64, 2x128x64}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !s, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>
func.func @shapes(%a: !a, %b: !b, %acc: !s, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op shapes do not multiply: 128x64 by 64x64 into 128x128}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !s, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @types(%a: !a, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op tcgen05.m128n64k16.f32.f16.f16 multiplies f16, f16 and f32, found bf16, bf16, f32}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.f16.f16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @too_wide(%a: !a, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op acc: 128x64 is not made of whole 128x128}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n128k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @rows_of_the_accumulator(%a: !a, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op acc: (128,64):(1@lane,1@col): row 16 does not lie in the lane where tcgen05.m64n64k16.f32.bf16.bf16 has it}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,2@col)">>
func.func @columns_of_the_accumulator(%a: !a, %b: !b, %acc: !s, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op acc: (128,64):(1@lane,2@col): element 1 of a row does not lie 32 bits behind}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !s, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @columns_of_the_lhs(%a: !s, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op lhs: (128,64):(1@lane,1@col): element 1 of a row does not lie 16 bits behind}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!s, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"(128,64):(72,1)">>
func.func @lhs_is_padded(%a: !s, %b: !b, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op lhs: (128,64):(72,1) does not lie as the instruction reads it}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!s, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"(64,64):(72,1)">>
func.func @rhs_is_padded(%a: !a, %b: !s, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op rhs: (64,64):(72,1) does not lie as the instruction reads it}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !s, !acc, i1) -> ()
  return
}

// -----
func.func @commit_to_a_number(%slot: i32) {
  // expected-error @below {{expected base type 'gpu_tile.barrier' but got 'builtin.integer'}}
  "gpu_tile.tcgen05_commit"(%slot, %slot) : (i32, i32) -> ()
  return
}

// -----
func.func @reserve_48() {
  // expected-error @below {{'gpu_tile.reserve_tensor_memory' op columns must be a power of two from 32 to 512, found 48}}
  "gpu_tile.reserve_tensor_memory"() {columns = 48 : i32, options = {}} : () -> ()
  return
}

// -----
func.func @reserve_1024() {
  // expected-error @below {{'gpu_tile.reserve_tensor_memory' op columns must be a power of two from 32 to 512, found 1024}}
  "gpu_tile.reserve_tensor_memory"() {columns = 1024 : i32, options = {}} : () -> ()
  return
}

// -----
func.func @address_is_not_aligned() {
  // expected-error @below {{'gpu_tile.reserve_tensor_memory' op offset 6 is no multiple of 4}}
  "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {offset = 6 : i32}} : () -> ()
  return
}

// -----
func.func @release_16() {
  // expected-error @below {{'gpu_tile.release_tensor_memory' op columns must be a power of two from 32 to 512, found 16}}
  "gpu_tile.release_tensor_memory"() {columns = 16 : i32} : () -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
func.func @copy_in_an_unknown_shape(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op attribute 'shape' must be one of '128x256b', '128x128b', '4x256b', '64x128b.warpx2::02_13', '64x128b.warpx2::01_23', '32x128b.warpx4', found "16x256b"}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "16x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
func.func @copy_the_other_way(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op expected a shared-memory buffer, found}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @copy_of_another_shape(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op shapes differ: source 128x32, target 128x64}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x32xi32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
func.func @copy_of_another_type(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op element types differ: source f32, target i32}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
func.func @copy_of_half_a_piece(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op (128,32):(1@lane,1@col) does not have the 64 lanes of 64x128b.warpx2::02_13}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "64x128b.warpx2::02_13"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"((16,4,2),32):((1@lane,32@lane,16@lane),1@col)">>
func.func @copy_to_other_lanes(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op S<3,4,3> o ((16,2,4),32):((32,2048,512),1) does not lie as the instruction reads it, from element 0 on}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o ((32,4),32):((1,1024),32)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>
func.func @copy_of_columns(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op 128x256b reads rows that are contiguous, found}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!rows = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"(64,64):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!plain = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,128):(1@lane,1@col)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>
!half = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(64,(32,2)):(1@lane,(1@col,64@lane))">>
func.func @pair_of_one_cta(%a: !left, %b: !b, %acc: !half, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op shapes do not multiply: 64x64 by 64x64 into 64x64}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n128k16.f32.bf16.bf16"} : (!left, !b, !half, i1) -> ()
  return
}

// -----
!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!rows = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"(64,64):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!plain = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,128):(1@lane,1@col)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>
!half = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(64,(32,2)):(1@lane,(1@col,64@lane))">>
func.func @pair_of_plain_columns(%a: !left, %b: !b, %acc: !plain, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op acc: (64,128):(1@lane,1@col): column 64 does not lie where tcgen05.pair.m128n128k16.f32.bf16.bf16 has it, the right half in the lanes from 64 on}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n128k16.f32.bf16.bf16"} : (!left, !b, !plain, i1) -> ()
  return
}

// -----
!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!rows = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"(64,64):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!plain = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,128):(1@lane,1@col)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>
!half = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(64,(32,2)):(1@lane,(1@col,64@lane))">>
func.func @pair_in_two_instructions(%a: !left, %b: !b, %acc: !pair, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op acc: tcgen05.pair.m128n64k16.f32.bf16.bf16 makes all columns of a pair's tile, found 128}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n64k16.f32.bf16.bf16"} : (!left, !b, !pair, i1) -> ()
  return
}

// -----
!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!rows = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"(64,64):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!plain = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,128):(1@lane,1@col)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>
!half = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(64,(32,2)):(1@lane,(1@col,64@lane))">>
func.func @pair_with_rows_in_tensor_memory(%a: !rows, %b: !b, %acc: !pair, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op lhs: tcgen05.pair.m128n128k16.f32.bf16.bf16 reads its lhs from shared memory}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n128k16.f32.bf16.bf16"} : (!rows, !b, !pair, i1) -> ()
  return
}

// -----
!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!rows = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"(64,64):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!plain = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,128):(1@lane,1@col)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>
!half = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(64,(32,2)):(1@lane,(1@col,64@lane))">>
func.func @pair_of_an_odd_width(%a: !left, %b: !b, %acc: !pair, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma' op unknown instruction 'tcgen05.pair.m128n48k16.f32.bf16.bf16'}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n48k16.f32.bf16.bf16"} : (!left, !b, !pair, i1) -> ()
  return
}

// -----
func.func @multicast_commit_to_a_number(%slot: i32) {
  // expected-error @below {{expected base type 'gpu_tile.barrier' but got 'builtin.integer'}}
  "gpu_tile.tcgen05_multicast_commit"(%slot, %slot, %slot) : (i32, i32, i32) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x4xf32>, #gpu_tile.shared<"(128,4):(4,1)">>
!t = !gpu_tile.buffer<tensor<128x4xf32>, #gpu_tile.tmem<"(128,4):(1@lane,1@col)">>
func.func @copy_of_half_a_piece(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op 4 elements of 32 bits are not whole pieces of 128x256b}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o (128,32):(32,1)">>
!t = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"(128,32):(1@lane,2@col)">>
func.func @copy_with_gaps(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op (128,32):(1@lane,2@col): the elements of a lane do not lie side by side}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<96x8xf32>, #gpu_tile.shared<"((48,2),8):((8,384),1)">>
!t = !gpu_tile.buffer<tensor<96x8xf32>, #gpu_tile.tmem<"((32,3),8):((1@lane,32@lane),1@col)">>
func.func @copy_of_parts_that_cross(%s: !s, %t: !t) {
  // expected-error @below {{'gpu_tile.tcgen05_copy' op parts of 32 and of 48 elements cross}}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "128x256b"} : (!s, !t) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!b = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>
func.func @scaled_by_a_plain_instruction(%a: !a, %sa: !sa, %b: !b, %sb: !sb, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma_scaled' op tcgen05.m128n64k32.f32.e4m3.e4m3 takes no scales}}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.m128n64k32.f32.e4m3.e4m3"} : (!a, !b, !acc, i1, !sa, !sb) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!b = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>
!s = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.shared<"(128,4):(4,1)">>
func.func @scales_in_shared_memory(%a: !a, %sa: !s, %b: !b, %sb: !sb, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma_scaled' op lhs_scale: expected a buffer in tensor memory, found}}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!a, !b, !acc, i1, !s, !sb) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!b = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>
func.func @scales_of_other_rows(%a: !a, %sa: !sa, %b: !b, %sb: !sa, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma_scaled' op rhs_scale: expected 64x4xi8, a scale per row and 32 elements, found 128x4xi8}}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!a, !b, !acc, i1, !sa, !sa) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!b = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>
!s = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,2@col),8@bit)">>
func.func @scales_in_other_columns(%a: !a, %sa: !s, %b: !b, %sb: !sb, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma_scaled' op lhs_scale: ((32,4),4):((1@lane,2@col),8@bit): row 32 does not lie where the instruction reads its scale}}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!a, !b, !acc, i1, !s, !sb) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!b = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>
!s = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),4@col)">>
func.func @scales_a_column_each(%a: !a, %sa: !s, %b: !b, %sb: !sb, %acc: !acc, %use: i1) {
  // expected-error @below {{'gpu_tile.tcgen05_mma_scaled' op lhs_scale: ((32,4),4):((1@lane,1@col),4@col): block 1 does not lie where the instruction reads its scale}}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!a, !b, !acc, i1, !s, !sb) -> ()
  return
}
