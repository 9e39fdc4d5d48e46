// Where parts of several sums come to one buffer, one after the other, memory is short: no panels.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x128xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!row = tensor<64x128xbf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,8):(1@1,8@0)">>
!part = !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"(64,128):(136,1)">>
!parts = !gpu_tile.buffer<tensor<1x64x128xbf16>, #gpu_tile.shared<"(64,128):(136,1)">>

// CHECK-LABEL: @turns
// CHECK-NOT: warp_tma_store
// CHECK: "tile.store"
func.func @turns(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel, tile.stripes = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %to = "gpu_tile.alloc"() {options = {}} : () -> !parts
  %first = "gpu_tile.slot"(%to, %c0) : (!parts, i32) -> !part
  "gpu_tile.cluster_send"(%x, %first) {axis = 0 : i32} : (!acc, !part) -> ()
  %second = "gpu_tile.slot"(%to, %c0) : (!parts, i32) -> !part
  "gpu_tile.cluster_send"(%x, %second) {axis = 0 : i32} : (!acc, !part) -> ()
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// A buffer for each leaves room.
// CHECK-LABEL: @at_once
// CHECK: gpu_tile.warp_tma_store
func.func @at_once(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel, tile.stripes = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %to = "gpu_tile.alloc"() {options = {}} : () -> !parts
  %first = "gpu_tile.slot"(%to, %c0) : (!parts, i32) -> !part
  "gpu_tile.cluster_send"(%x, %first) {axis = 0 : i32} : (!acc, !part) -> ()
  %other = "gpu_tile.alloc"() {options = {}} : () -> !parts
  %second = "gpu_tile.slot"(%other, %c0) : (!parts, i32) -> !part
  "gpu_tile.cluster_send"(%x, %second) {axis = 0 : i32} : (!acc, !part) -> ()
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}
