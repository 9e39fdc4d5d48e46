// f32 sums whose rows begin at sectors are stored as threads hold them: eight sectors of eight rows at a
// time. Where rows begin anywhere each of these lies in two, and threads rearrange them first.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @whole
// CHECK-NOT: convert_layout
// CHECK: tile.store
func.func @whole(%a: !a, %b: !a, %c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!a, !a, !c) -> !c
  "tile.store"(%sum, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @anywhere
// CHECK: %[[SUM:.*]] = "gpu_tile.convert_layout"({{.*}} -> tensor<64x64xf32, #gpu_tile.layout<"T(64,2):(1@1,1@0) V(32):(2@0)">>
// CHECK-NEXT: "tile.store"(%[[SUM]]
func.func @anywhere(%a: !a, %b: !a, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!a, !a, !c) -> !c
  "tile.store"(%sum, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}
