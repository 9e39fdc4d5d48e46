// Tiles of bytes beside the sums of a product: each fills its buffer before the next is loaded.
// RUN: tilec opt %s --passes fill-piecewise --target sm_80 --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xi8, strided<[?, 1]>>
!s = tensor<128x128xi32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,8,8):(1@1,8@0,8@1)">>
!x = tensor<128x64xi8, #gpu_tile.layout<"T(64,2):(1@1,1@0) V(64):(2@0)">>
!y = tensor<64x128xi8, #gpu_tile.layout<"T(128):(1@1) V(64):(1@0)">>
!bx = !gpu_tile.buffer<tensor<128x64xi8>, #gpu_tile.shared<"S<2,4,3> o (128,64):(64,1)">>
!by = !gpu_tile.buffer<tensor<64x128xi8>, #gpu_tile.shared<"S<2,4,3> o (64,128):(1,64)">>

// CHECK-LABEL: @two_tiles
func.func @two_tiles(%a: !m, %b: !m, %c: !m, %sums: !s, %k: index) -> !s attributes {tile.kernel} {
  // CHECK: %[[X:[^ ]*]] = "tile.load"(%arg0
  // CHECK: "gpu_tile.buffer_store"(%[[X]]
  // CHECK: %[[Y:[^ ]*]] = "tile.load"(%arg1
  // CHECK-NOT: tile.load
  // CHECK: "gpu_tile.buffer_store"(%[[Y]]
  %x = "tile.load"(%a, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  %y = "tile.load"(%b, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !y
  %p = "gpu_tile.alloc"() {options = {}} : () -> !bx
  "gpu_tile.buffer_store"(%x, %p) : (!x, !bx) -> ()
  %q = "gpu_tile.alloc"() {options = {}} : () -> !by
  "gpu_tile.buffer_store"(%y, %q) : (!y, !by) -> ()
  return %sums : !s
}

// -----
!m = memref<?x?xi8, strided<[?, 1]>>
!s = tensor<128x128xi32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,8,8):(1@1,8@0,8@1)">>
!x = tensor<128x64xi8, #gpu_tile.layout<"T(64,2):(1@1,1@0) V(64):(2@0)">>
!y = tensor<64x128xi8, #gpu_tile.layout<"T(128):(1@1) V(64):(1@0)">>
!bx = !gpu_tile.buffer<tensor<128x64xi8>, #gpu_tile.shared<"S<2,4,3> o (128,64):(64,1)">>
!by = !gpu_tile.buffer<tensor<64x128xi8>, #gpu_tile.shared<"S<2,4,3> o (64,128):(1,64)">>

// What was loaded is written in between: its load stays in front of that. The first tile, which
// fills its buffer where the most is alive, comes in halves, and both again.
// CHECK-LABEL: @written_meanwhile
func.func @written_meanwhile(%a: !m, %b: !m, %sums: !s, %k: index) -> !s attributes {tile.kernel} {
  // CHECK: %[[Y:[^ ]*]] = "tile.load"(%arg1
  // CHECK: "tile.store"(%{{.*}}, %arg1
  // CHECK: "gpu_tile.buffer_store"(%[[Y]]
  %x = "tile.load"(%a, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  %y = "tile.load"(%b, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !y
  %zeros = arith.constant dense<0> : !y
  "tile.store"(%zeros, %b, %k, %k) {dims = array<i32: 0, 1>, options = {}} : (!y, !m, index, index) -> ()
  %p = "gpu_tile.alloc"() {options = {}} : () -> !bx
  "gpu_tile.buffer_store"(%x, %p) : (!x, !bx) -> ()
  %q = "gpu_tile.alloc"() {options = {}} : () -> !by
  "gpu_tile.buffer_store"(%y, %q) : (!y, !by) -> ()
  return %sums : !s
}
