// Two warpgroups take 96 columns each of a tile of 192: b lies as the array has it, in panels of 32
// columns, of which each instruction reads three. One warpgroup takes all, and panels of 64.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands --target sm_90a --num-warps 8 | filecheck %s
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands --target sm_90a --num-warps 4 | filecheck %s --check-prefix WHOLE

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!b = tensor<64x192xbf16>
!c = tensor<64x192xf32>

// CHECK: "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">
// CHECK: "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<2,4,3> o (64,(32,6)):(32,(1,2048))">
// CHECK: "gpu_tile.wgmma"({{.*}}instruction = "wgmma.m64n96k16.f32.bf16.bf16"
// WHOLE: "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">
// WHOLE: "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,(64,3)):(64,(1,4096))">
// WHOLE: "gpu_tile.wgmma"({{.*}}instruction = "wgmma.m64n192k16.f32.bf16.bf16"
func.func @product(%a: !m, %b: !m, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %ta = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %sum = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !b, !c) -> !c
  "tile.store"(%sum, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
