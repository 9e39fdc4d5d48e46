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
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!past = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>>
func.func @accumulator_past_its_edge(%a: !a, %b: !b, %p: !past) {
  // expected-error @below {{'gpu_tile.wgmma' op the accumulator's layout does not fit 64x64 exactly}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !past) -> !past
  return
}

// -----
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!turned = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(8,4,4):(1@0,2@1,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
func.func @accumulator_of_other_fragments(%a: !a, %b: !b, %p: !turned) {
  // expected-error @below {{'gpu_tile.wgmma' op acc: layout T(8,4,4):(1@0,2@1,16@0) V(2,2,8):(1@1,8@0,8@1) does not begin with the fragment}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!a, !b, !turned) -> !turned
  return
}

// -----
!h = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!pairs = !gpu_tile.pending<tensor<64x64xf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(8@0,1@1,8@1)">>>
func.func @accumulator_in_other_pairs(%a: !h, %b: !h, %p: !pairs) {
  // expected-error @below {{'gpu_tile.wgmma' op acc: layout T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(8@0,1@1,8@1) does not keep neighbouring columns in one register}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f16.f16.f16"} : (!h, !h, !pairs) -> !pairs
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!two = !gpu_tile.pending<tensor<128x64xf32, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
!same = tensor<128x64xbf16, #gpu_tile.layout<"T(4,8,4,2):(2@1,1@0,16@0,0) V(2,2,2,4,2):(1@1,8@0,8@1,16@1,64@0)">>
func.func @lhs_of_another_warpgroup(%a: !same, %b: !b, %p: !two) {
  // expected-error @below {{'gpu_tile.wgmma' op the warpgroups' rows of lhs and accumulator differ}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!same, !b, !two) -> !two
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!twice = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,2,2):(1@1,8@0,8@1,32@1)">>
func.func @lhs_holds_some_of_k(%a: !twice, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op lhs: layout T(4,8,4):(2@1,1@0,16@0) V(2,2,2,2):(1@1,8@0,8@1,32@1) does not hold all of k}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!twice, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!eight = !gpu_tile.buffer<tensor<64x64xf8E4M3FN>, #gpu_tile.shared<"S<2,4,3> o (64,64):(64,1)">>
!down = !gpu_tile.buffer<tensor<64x64xf8E4M3FN>, #gpu_tile.shared<"S<2,4,3> o (64,64):(64,1)">>
func.func @bytes_contiguous_along_n(%a: !eight, %b: !down, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op rhs: wgmma.m64n64k32.f32.e4m3.e4m3 reads operands that are contiguous along k, found S<2,4,3> o (64,64):(64,1) with k as dimension 0}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k32.f32.e4m3.e4m3"} : (!eight, !down, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!padded = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"(64,64):(72,1)">>
func.func @padded_rows(%a: !padded, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op lhs: (64,64):(72,1) does not lie as the instruction reads it, from element 0 on}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!padded, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!odd = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,3,3> o (64,64):(64,1)">>
func.func @unknown_swizzle(%a: !odd, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op lhs: the instruction knows no swizzle like that of S<3,3,3> o (64,64):(64,1)}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!odd, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!far = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"(64,64):(128,2)">>
func.func @nothing_contiguous(%a: !far, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op lhs: neither dimension of (64,64):(128,2) is contiguous}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!far, !b, !p) -> !p
  return
}

// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!a = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
func.func @half_an_instruction(%a: !a, %b: !b, %p: !p) {
  // expected-error @below {{'gpu_tile.wgmma' op acc: layout}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n40k16.f32.bf16.bf16"} : (!a, !b, !p) -> !p
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
// -----
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @meanwhile_is_about_everything_in_front(%c: !acc) {
  // expected-error @below {{op expects exactly 0 operands, but got 1}}
  "gpu_tile.wgmma_meanwhile"(%c) : (!acc) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<64x32xf32>, #gpu_tile.shared<"S<3,4,3> o (64,32):(32,1)">>
!b = !gpu_tile.buffer<tensor<32x64xf32>, #gpu_tile.shared<"S<3,4,3> o (32,64):(1,32)">>
!paired = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,2,2,4,2):(2@1,2@0,16@0,4@0,32@0) V(2,2,8):(1@0,1@1,8@1)">>>
func.func @rows_of_registers(%a: !a, %b: !b, %p: !paired) {
  // expected-error @below {{'gpu_tile.wgmma' op wgmma.m64n64k8.f32.tf32.tf32.paired has rows in an order that only registers have}}
  %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"} : (!a, !b, !paired) -> !paired
  return
}
