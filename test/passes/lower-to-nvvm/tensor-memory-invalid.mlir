// Warps that do not reach their part of tensor memory, and views that begin who knows where.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 8 --split-input-file --verify-diagnostics

!t = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>
func.func @role_begins_at_warp_2() attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 64 : i32}} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  "gpu_tile.role"() ({
    // expected-error @below {{warp 2 of the CTA reaches lanes 64 to 95 of tensor memory, its part of (128,16):(1@lane,1@col) begins in lane 0}}
    %v = "gpu_tile.buffer_load"(%t) : (!t) -> !l
    "gpu.yield"() : () -> ()
  }) {name = "epilogue", first_warp = 2 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!v = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<64x64xf32, #gpu_tile.layout<"T(32,2,4):(1@0,32@0,16@1) V(16):(1@1)">>
func.func @view_begins_in_a_lane_unknown(%i: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {offset = 64 : i32}} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %v = "gpu_tile.view"(%t, %i, %c0) : (!t, i32, i32) -> !v
  // expected-error @below {{the view begins at a multiple of 1 of dimension 0, which may lie anywhere in (128,64):(1@lane,1@col)}}
  %l = "gpu_tile.buffer_load"(%v) : (!v) -> !l
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!v = !gpu_tile.buffer<tensor<128x32xf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!l = tensor<128x32xf16, #gpu_tile.layout<"T(128,2):(1@0,16@1) V(16):(1@1)">>
func.func @view_begins_inside_a_column() attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 64 : i32}} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %v = "gpu_tile.view"(%t, %c0, %c1) : (!t, i32, i32) -> !v
  // expected-error @below {{the view begins inside a column of (128,64):(1@lane,16@bit)}}
  %l = "gpu_tile.buffer_load"(%v) : (!v) -> !l
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>
func.func @pair_without_a_cluster(%use: i1) attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32, options = {offset = 64 : i32}} : () -> ()
  %a = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 17408 : i32}} : () -> !b
  %acc = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !acc
  // expected-error @below {{a pair of CTAs is two neighbours of a cluster; this has none}}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m256n128k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>
!own = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
func.func @pair_and_one_cta(%use: i1) attributes {tile.kernel, tile.persistent = true, tile.cluster = array<i32: 2>} {
  "gpu_tile.reserve_tensor_memory"() {columns = 256 : i32, options = {offset = 64 : i32}} : () -> ()
  %a = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 17408 : i32}} : () -> !b
  %acc = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !acc
  %own = "gpu_tile.alloc"() {options = {offset = 128 : i32}} : () -> !own
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m256n128k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  // expected-error @below {{the products of a kernel are all those of one CTA, or all those of pairs}}
  "gpu_tile.tcgen05_mma"(%a, %b, %own, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !own, i1) -> ()
  return
}
