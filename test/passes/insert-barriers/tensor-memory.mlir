// Tensor memory: what threads stored one of them multiplies, what they read it overwrites.
// RUN: tilec opt %s --passes insert-barriers --target sm_100a --num-warps 4 | filecheck %s

!sa = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!sb = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
!a = tensor<128x64xbf16, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
!bar = !gpu_tile.barrier
!ring = !gpu_tile.ring

// CHECK-LABEL: @dot
// Two stores into two memories, whose numbers happen to meet, need no order.
// CHECK: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.tcgen05_mma
// CHECK-NEXT: gpu_tile.ring_publish
// Everybody waits for the ring, so the sum needs no sync, nor do the operands to be overwritten.
// CHECK-NEXT: gpu_tile.ring_wait
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: gpu_tile.buffer_store
// One thread's product overwrites what others read, and reads what they wrote.
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.tcgen05_mma
func.func @dot(%x: !x, %a: !a, %n: i32) attributes {tile.kernel} {
  %sa = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sa
  %sb = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !sb
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %true = arith.constant true
  %s = "gpu_tile.ring_slot"(%done, %n) : (!ring, i32) -> i32
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  "gpu_tile.buffer_store"(%x, %t) : (!x, !t) -> ()
  "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!sa, !sb, !t, i1) -> ()
  "gpu_tile.ring_publish"(%done, %s) {by = "products"} : (!ring, i32) -> ()
  %ready = "gpu_tile.ring_wait"(%done, %n) {previous = false} : (!ring, i32) -> i32
  %y = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!sa, !sb, !t, i1) -> ()
  return
}

// The same with mbarriers.
// CHECK-LABEL: @written_mbarriers
// CHECK: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.tcgen05_mma
// CHECK-NEXT: gpu_tile.tcgen05_commit
// CHECK-NEXT: gpu_tile.barrier_wait
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.tcgen05_mma
func.func @written_mbarriers(%x: !x, %a: !a, %p: i1, %s: i32) attributes {tile.kernel} {
  %sa = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sa
  %sb = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !sb
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %done = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 24576 : i32}} : () -> !bar
  %true = arith.constant true
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  "gpu_tile.buffer_store"(%x, %t) : (!x, !t) -> ()
  "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!sa, !sb, !t, i1) -> ()
  "gpu_tile.tcgen05_commit"(%done, %s) : (!bar, i32) -> ()
  "gpu_tile.barrier_wait"(%done, %s, %p) : (!bar, i32, i1) -> ()
  %y = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!sa, !sb, !t, i1) -> ()
  return
}
