// The instruction that adds up in tensor memory, as large as the tile allows.
// RUN: tilec opt %s --passes select-mma --target sm_100a --num-warps 4 | filecheck %s

// CHECK: instruction = "tcgen05.m128n256k16.f32.bf16.bf16"
func.func @whole(%x: tensor<128x64xbf16>, %y: tensor<64x256xbf16>, %z: tensor<128x256xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>) -> tensor<128x256xf32>
  return
}

// Two blocks of rows, two of columns.
// CHECK: instruction = "tcgen05.m128n192k8.f32.tf32.tf32"
func.func @blocks(%x: tensor<256x32xf32>, %y: tensor<32x192xf32>, %z: tensor<256x192xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {precision = "tf32"}} : (tensor<256x32xf32>, tensor<32x192xf32>, tensor<256x192xf32>) -> tensor<256x192xf32>
  return
}

// CHECK: instruction = "tcgen05.m64n24k32.f32.e4m3.e5m2"
func.func @half(%x: tensor<64x32xf8E4M3FN>, %y: tensor<32x24xf8E5M2>, %z: tensor<64x24xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x32xf8E4M3FN>, tensor<32x24xf8E5M2>, tensor<64x24xf32>) -> tensor<64x24xf32>
  return
}

// CHECK: instruction = "tcgen05.m128n64k32.s32.s8.s8"
func.func @integers(%x: tensor<128x32xi8>, %y: tensor<32x64xi8>, %z: tensor<128x64xi32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x32xi8>, tensor<32x64xi8>, tensor<128x64xi32>) -> tensor<128x64xi32>
  return
}

// More columns than there are.
// CHECK: instruction = "mma.m16n8k16.f32.bf16.bf16"
func.func @large(%x: tensor<256x16xbf16>, %y: tensor<16x512xbf16>, %z: tensor<256x512xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<256x16xbf16>, tensor<16x512xbf16>, tensor<256x512xf32>) -> tensor<256x512xf32>
  return
}

// The count of a barrier's uses runs on through a branch.
// CHECK: instruction = "tcgen05.m128n64k16.f32.bf16.bf16"
func.func @branch(%p: i1, %x: tensor<128x16xbf16>, %y: tensor<16x64xbf16>, %z: tensor<128x64xf32>) attributes {tile.kernel} {
  %r = scf.if %p -> (tensor<128x64xf32>) {
    %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<128x16xbf16>, tensor<16x64xbf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  } else {
    scf.yield %z : tensor<128x64xf32>
  }
  return
}

// 32 rows fill no block.
// CHECK: instruction = "mma.m16n8k16.f32.bf16.bf16"
func.func @short(%x: tensor<32x16xbf16>, %y: tensor<16x64xbf16>, %z: tensor<32x64xf32>) attributes {tile.kernel} {
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<32x16xbf16>, tensor<16x64xbf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return
}
