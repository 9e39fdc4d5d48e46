// Accesses that need no sync.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#row = #gpu_tile.layout<"T(128):(1@0) V():()">
#back = #gpu_tile.layout<"T(4,32):(32@0,1@0) V():()">
!t = tensor<128xf32, #row>
!u = tensor<128xf32, #back>
!b = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!h = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(128):(1)">>
!v = tensor<64xf32, #gpu_tile.layout<"T(2,32,2):(32@0,1@0,0) V():()">>

// CHECK-NOT: gpu_tile.sync

// Each thread reads back what it wrote.
func.func @own_elements(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  %p = "gpu_tile.buffer_load"(%s) : (!b) -> !t
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  return
}

func.func @two_reads(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %p = "gpu_tile.buffer_load"(%s) : (!b) -> !u
  %q = "gpu_tile.buffer_load"(%s) : (!b) -> !t
  return
}

func.func @other_bytes(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %other = "gpu_tile.alloc"() {options = {offset = 512 : i32}} : () -> !b
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  %p = "gpu_tile.buffer_load"(%other) : (!b) -> !u
  return
}

// Halves of one buffer.
func.func @other_box(%y: !v) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %i0 = arith.constant 0 : i32
  %i64 = arith.constant 64 : i32
  %low = "gpu_tile.view"(%s, %i0) : (!b, i32) -> !h
  %high = "gpu_tile.view"(%s, %i64) : (!b, i32) -> !h
  "gpu_tile.buffer_store"(%y, %low) : (!v, !h) -> ()
  %p = "gpu_tile.buffer_load"(%high) : (!h) -> !v
  return
}
