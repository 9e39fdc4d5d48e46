// The second product adds to a sum that the loop itself never stores: its columns leave the loop, as
// the next iteration waits for the product and loads it.
// RUN: tilec opt %s --passes rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!slots = !gpu_tile.buffer<tensor<6x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!sum = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),1@col)">>
!p = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),16@bit)">>
!s = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!h = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @adds
// CHECK: %[[O:.*]] = "gpu_tile.alloc"(){{.*}}tensor<64x64xf32>, #gpu_tile.tmem
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[O]])
// CHECK: scf.for
// CHECK: "gpu_tile.ring_wait"(%[[DONE:.*]], %{{.*}}) {previous = true}
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[O]], %true
// CHECK-NOT: ring_wait
// CHECK: scf.yield
// CHECK: "gpu_tile.ring_wait"(%[[DONE]], %{{.*}}) {previous = true}
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[O]])
func.func @adds(%begin: i32, %end: i32, %out: memref<?x?xf32, strided<[?, 1]>>, %row: index) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 6 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %scored = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %q = "gpu_tile.alloc"() {options = {}} : () -> !slot
  %v = "gpu_tile.alloc"() {options = {}} : () -> !slot
  %slots = "gpu_tile.alloc"() {options = {}} : () -> !slots
  %zero = arith.constant 0 : i32
  %zeros = arith.constant dense<0.0> : !s
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  %last:2 = scf.for %n = %begin to %end step %one iter_args(%total = %zeros, %count = %zero) -> (!s, i32) : i32 {
    %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!b, i32) -> i32
    %k = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
    %scores = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.tcgen05_mma"(%q, %k, %scores, %false) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!slot, !slot, !sum, i1) -> ()
    "gpu_tile.ring_release"(%ring, %at) {by = "products"} : (!b, i32) -> ()
    %each = "gpu_tile.ring_slot"(%scored, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%scored, %each) {by = "products"} : (!b, i32) -> ()
    %there = "gpu_tile.ring_wait"(%scored, %count) {previous = false} : (!b, i32) -> i32
    %s = "gpu_tile.buffer_load"(%scores) : (!sum) -> !s
    %e = arith.truncf %s : !s to !h
    %left = "gpu_tile.alloc"() {options = {}} : () -> !p
    "gpu_tile.buffer_store"(%e, %left) : (!h, !p) -> ()
    %sum = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.tcgen05_mma"(%left, %v, %sum, %true) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!p, !slot, !sum, i1) -> ()
    %own = "gpu_tile.ring_slot"(%done, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%done, %own) {by = "products"} : (!b, i32) -> ()
    %over = "gpu_tile.ring_wait"(%done, %count) {previous = false} : (!b, i32) -> i32
    %next = "gpu_tile.buffer_load"(%sum) : (!sum) -> !s
    %turn = arith.addi %count, %one : i32
    scf.yield %next, %turn : !s, i32
  }
  "tile.store"(%last#0, %out, %row, %row) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
