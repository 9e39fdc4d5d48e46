// A store and a load in one layout, where threads all the same read what others wrote.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 1 | filecheck %s

!b = !gpu_tile.buffer<tensor<24xf32>, #gpu_tile.shared<"(24):(1)">>
!t = tensor<24xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!m = !gpu_tile.buffer<tensor<16x16xf16>, #gpu_tile.shared<"(16,16):(24,1)">>
!f = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!w = !gpu_tile.buffer<tensor<16x16xf16>, #gpu_tile.shared<"(16,16):(18,1)">>

// Threads 24 to 31 hold no element; they read the last.
// CHECK-LABEL: @fewer_elements_than_threads
// CHECK: gpu_tile.sync
func.func @fewer_elements_than_threads(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!b) -> !t
  return
}

// By ldmatrix a thread reads a row for the whole warp.
// CHECK-LABEL: @matrix_rows
// CHECK: gpu_tile.sync
func.func @matrix_rows(%x: !f) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !m
  "gpu_tile.buffer_store"(%x, %s) : (!f, !m) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!m) -> !f
  return
}

// Rows of 36 bytes are no rows for ldmatrix: plain loads, each thread its own elements.
// CHECK-LABEL: @plain_loads
// CHECK-NOT: gpu_tile.sync
func.func @plain_loads(%x: !f) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !w
  "gpu_tile.buffer_store"(%x, %s) : (!f, !w) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!w) -> !f
  return
}
