// Places of two buffers in the same bytes do not compare: disjoint boxes may be the same memory.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 2 | filecheck %s

!rows = !gpu_tile.buffer<tensor<2x64xf32>, #gpu_tile.shared<"(2,64):(64,1)">>
!row = !gpu_tile.buffer<tensor<1x64xf32>, #gpu_tile.shared<"(2,64):(64,1)">>
!columns = !gpu_tile.buffer<tensor<64x2xf32>, #gpu_tile.shared<"(64,2):(2,1)">>
!half = !gpu_tile.buffer<tensor<32x2xf32>, #gpu_tile.shared<"(64,2):(2,1)">>
!t = tensor<1x64xf32, #gpu_tile.layout<"T(64):(1@1) V():()">>
!u = tensor<32x2xf32, #gpu_tile.layout<"T(2,32):(1@1,1@0) V():()">>

// CHECK-LABEL: @row_one_is_rows_32_to_63
// CHECK: gpu_tile.buffer_store
// CHECK: gpu_tile.sync
// CHECK: gpu_tile.buffer_load
func.func @row_one_is_rows_32_to_63(%x: !t) attributes {tile.kernel} {
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %i32 = arith.constant 32 : i32
  %a = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !rows
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !columns
  %va = "gpu_tile.view"(%a, %i1, %i0) : (!rows, i32, i32) -> !row
  %vb = "gpu_tile.view"(%b, %i32, %i0) : (!columns, i32, i32) -> !half
  "gpu_tile.buffer_store"(%x, %va) : (!t, !row) -> ()
  %y = "gpu_tile.buffer_load"(%vb) : (!half) -> !u
  return
}
