// Every rule of the ops in wgmma.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!wide = !gpu_tile.pending<tensor<64x128xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>>
func.func @fence_of_another_tile(%acc: !acc) {
  // expected-error @below {{'gpu_tile.wgmma_fence' op result must be pending tensor<64x64xf32, }}
  %p = "gpu_tile.wgmma_fence"(%acc) : (!acc) -> !wide
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
func.func @fence_of_a_pending_tile(%p: !p) {
  // expected-error @below {{expected base type 'builtin.tensor' but got}}
  %q = "gpu_tile.wgmma_fence"(%p) : (!p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!wide = !gpu_tile.pending<tensor<64x128xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>>
func.func @result_of_another_type(%a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op result type !gpu_tile.pending<tensor<64x128xf32}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !p) -> !wide
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
func.func @unknown_instruction(%a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op unknown instruction 'wgmma.m64n63k16.f32.bf16.bf16'}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n63k16.f32.bf16.bf16"} : (!a, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
func.func @instruction_of_a_warp(%a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op mma.m16n8k16.f32.bf16.bf16 is no instruction of a warpgroup}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !p) -> !p
  return
}

// -----
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!bare = !gpu_tile.pending<tensor<64x64xf32>>
func.func @accumulator_without_a_layout(%a: !a, %b: !b, %p: !bare) {
  // expected-error @below {{'gpu_tile.wgmma' op expected a tile with a #gpu_tile.layout, found no layout}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !bare) -> !bare
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
func.func @lhs_is_pending(%a: !p, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op expected a buffer or a tile, found !gpu_tile.pending}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!p, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!fragment = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,2,4):(1@1,8@0,8@1,16@1)">>
func.func @rhs_in_registers(%a: !a, %b: !fragment, %p: !p) {
  // expected-error @below {{expected base type 'gpu_tile.buffer' but got}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !fragment, !p) -> !p
  return
}

// -----
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!wide = !gpu_tile.pending<tensor<64x128xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>>
func.func @sizes_do_not_multiply(%a: !a, %b: !b, %p: !wide) {
  // expected-error @below {{'gpu_tile.wgmma' op shapes do not multiply: 64x64 by 64x64 into 64x128}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !wide) -> !wide
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!h = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
func.func @other_element_types(%a: !h, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op wgmma.m64n64k16.f32.bf16.bf16 multiplies bf16, bf16 and f32, found f16, bf16, f32}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!h, !b, !p) -> !p
  return
}

// -----
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!half = !gpu_tile.pending<tensor<64x64xf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
func.func @other_accumulator(%a: !a, %b: !b, %p: !half) {
  // expected-error @below {{'gpu_tile.wgmma' op wgmma.m64n64k16.f32.bf16.bf16 multiplies bf16, bf16 and f32, found bf16, bf16, f16}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !half) -> !half
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
func.func @wait_for_eight(%p: !p) {
  // expected-error @below {{'gpu_tile.wgmma_wait' op pending must be 0 to 7, found 8}}
  %q = "gpu_tile.wgmma_wait"(%p) {pending = 8 : i32} : (!p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
func.func @wait_for_fewer_than_none(%p: !p) {
  // expected-error @below {{'gpu_tile.wgmma_wait' op pending must be 0 to 7, found -1}}
  %q = "gpu_tile.wgmma_wait"(%p) {pending = -1 : i32} : (!p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!wide = !gpu_tile.pending<tensor<64x128xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>>
func.func @wait_gives_another_tile(%p: !p) {
  // expected-error @below {{'gpu_tile.wgmma_wait' op result must be tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>, pending or not}}
  %q = "gpu_tile.wgmma_wait"(%p) {pending = 0 : i32} : (!p) -> !wide
  return
}
