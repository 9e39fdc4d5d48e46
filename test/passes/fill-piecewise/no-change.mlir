// What fits stays together, as does what is needed as a whole.
// RUN: tilec opt %s --passes fill-piecewise --target sm_80 --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xi8, strided<[?, 1]>>
!x = tensor<128x64xi8, #gpu_tile.layout<"T(64,2):(1@1,1@0) V(64):(2@0)">>
!b = !gpu_tile.buffer<tensor<128x64xi8>, #gpu_tile.shared<"S<2,4,3> o (128,64):(64,1)">>

// CHECK-LABEL: @fits
// CHECK-COUNT-2: "tile.load"
// CHECK-NOT: "tile.load"
// CHECK-COUNT-2: "gpu_tile.buffer_store"
func.func @fits(%a: !m, %k: index) attributes {tile.kernel} {
  %x = "tile.load"(%a, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  %y = "tile.load"(%a, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  %p = "gpu_tile.alloc"() {options = {}} : () -> !b
  %q = "gpu_tile.alloc"() {options = {}} : () -> !b
  "gpu_tile.buffer_store"(%x, %p) : (!x, !b) -> ()
  "gpu_tile.buffer_store"(%y, %q) : (!x, !b) -> ()
  return
}

// -----
!m = memref<?x?xi8, strided<[?, 1]>>
!x = tensor<128x64xi8, #gpu_tile.layout<"T(64,2):(1@1,1@0) V(64):(2@0)">>
!b = !gpu_tile.buffer<tensor<128x64xi8>, #gpu_tile.shared<"S<2,4,3> o (128,64):(64,1)">>
!s = tensor<128x256xi32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,64@0,128@1) V(2,8,16):(1@1,8@0,8@1)">>

// The tile is used in registers, too; and the most is alive at a place that fills nothing.
// CHECK-LABEL: @used_as_a_whole
// CHECK: %[[X:[^ ]*]] = "tile.load"
// CHECK-NEXT: "gpu_tile.alloc"
// CHECK-NEXT: "gpu_tile.buffer_store"(%[[X]]
// CHECK-NEXT: return %{{.*}}, %[[X]]
func.func @used_as_a_whole(%a: !m, %sums: !s, %k: index) -> (!s, !x) attributes {tile.kernel} {
  %x = "tile.load"(%a, %k, %k) {dims = array<i32: 0, 1>, options = {}, padding = 0 : i8} : (!m, index, index) -> !x
  %p = "gpu_tile.alloc"() {options = {}} : () -> !b
  "gpu_tile.buffer_store"(%x, %p) : (!x, !b) -> ()
  return %sums, %x : !s, !x
}
