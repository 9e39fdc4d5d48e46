// A branch in front of a loop issues what its first iteration waits for: behind the loop nothing is
// under way, whether it ran or not, and what the product read may be stored anew.
// RUN: tilec opt %s --passes insert-barriers --target sm_100a --num-warps 4 | filecheck %s

!sa = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!sb = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!a = tensor<128x64xbf16, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
!ring = !gpu_tile.ring

// CHECK-LABEL: @ahead
// CHECK: gpu_tile.buffer_store
// CHECK: scf.if
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.tcgen05_mma
// CHECK: scf.for
// CHECK: gpu_tile.ring_wait
// CHECK: gpu_tile.buffer_store
// CHECK-NEXT: return
func.func @ahead(%a: !a, %n: i32, %first: index, %end: index) attributes {tile.kernel} {
  %sa = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sa
  %sb = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !sb
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %true = arith.constant true
  %step = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %s = "gpu_tile.ring_slot"(%done, %n) : (!ring, i32) -> i32
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  %runs = arith.cmpi slt, %first, %end : index
  scf.if %runs {
    "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!sa, !sb, !t, i1) -> ()
    "gpu_tile.ring_publish"(%done, %s) {by = "products"} : (!ring, i32) -> ()
  }
  %count = scf.for %i = %first to %end step %step iter_args(%c = %n) -> (i32) {
    %ready = "gpu_tile.ring_wait"(%done, %c) {previous = false} : (!ring, i32) -> i32
    %next = arith.addi %c, %one : i32
    scf.yield %next : i32
  }
  "gpu_tile.buffer_store"(%a, %sa) : (!a, !sa) -> ()
  return
}
