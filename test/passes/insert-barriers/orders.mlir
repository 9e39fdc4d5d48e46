// One sync per dependence between threads: read after write, write after read, write after write.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#row = #gpu_tile.layout<"T(128):(1@0) V():()">
#back = #gpu_tile.layout<"T(4,32):(32@0,1@0) V():()">
!t = tensor<128xf32, #row>
!u = tensor<128xf32, #back>
!b = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!h = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(128):(1)">>
!v = tensor<64xf32, #gpu_tile.layout<"T(2,32,2):(32@0,1@0,0) V():()">>

// CHECK-LABEL: @straight_line
func.func @straight_line(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK: gpu_tile.buffer_store
  // CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
  // CHECK-NEXT: gpu_tile.buffer_load
  // CHECK-NEXT: gpu_tile.buffer_load
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: gpu_tile.buffer_store
  // CHECK-NEXT: return
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  %p = "gpu_tile.buffer_load"(%s) : (!b) -> !u
  %q = "gpu_tile.buffer_load"(%s) : (!b) -> !u
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  return
}

// The end of an iteration stands before the start of the next.
// CHECK-LABEL: @loop
func.func @loop(%x: !t, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK: scf.for
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: gpu_tile.buffer_store
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: gpu_tile.buffer_load
  // CHECK-NEXT: }
  scf.for %i = %c0 to %n step %c1 {
    "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
    %p = "gpu_tile.buffer_load"(%s) : (!b) -> !u
  }
  return
}

// Two buffers in the same bytes depend on each other.
// CHECK-LABEL: @shared_bytes
func.func @shared_bytes(%x: !t) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %other = "gpu_tile.alloc"() {options = {offset = 256 : i32}} : () -> !b
  // CHECK: gpu_tile.buffer_store
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: gpu_tile.buffer_load
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  %p = "gpu_tile.buffer_load"(%other) : (!b) -> !u
  return
}
