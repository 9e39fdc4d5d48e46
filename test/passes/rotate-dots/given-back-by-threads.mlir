// Threads release the slot of %k behind their wait for the second product: that wait stays in its
// iteration, as a release it left behind would free what the product still reads.
// RUN: tilec opt %s --passes rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!slots = !gpu_tile.buffer<tensor<6x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!turned = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!part = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),16@bit)">>
!sum = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),1@col)">>
!s = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @two_products
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK: scf.for
// CHECK: scf.if
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK: math.exp2
// CHECK: "gpu_tile.transpose_view"
// CHECK: "gpu_tile.tcgen05_mma"
// CHECK: %[[AT:.*]] = "gpu_tile.ring_slot"(%[[DONE:[^,]*]], %[[N:[^)]*]])
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[DONE]], %[[AT]]) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_wait"(%[[DONE]], %[[N]]) {previous = false}
// CHECK-NEXT: "gpu_tile.ring_release"(%{{.*}}, %{{.*}}) {by = "warp"}
// CHECK: scf.yield
func.func @two_products(%begin: i32, %end: i32) attributes {tile.kernel} {
  %q = "gpu_tile.alloc"() {options = {}} : () -> !turned
  %slots = "gpu_tile.alloc"() {options = {}} : () -> !slots
  %sum = "gpu_tile.alloc"() {options = {}} : () -> !sum
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %scored = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %ring = "gpu_tile.make_ring"() {slots = 6 : i32, fills = 1 : i32, releases = 4 : i32, options = {}} : () -> !b
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  %last = scf.for %n = %begin to %end step %one iter_args(%count = %zero) -> (i32) : i32 {
    %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!b, i32) -> i32
    %k = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
    %scores = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.tcgen05_mma"(%q, %k, %scores, %false) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!turned, !slot, !sum, i1) -> ()
    %each = "gpu_tile.ring_slot"(%scored, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%scored, %each) {by = "products"} : (!b, i32) -> ()
    %there = "gpu_tile.ring_wait"(%scored, %count) {previous = false} : (!b, i32) -> i32
    %s = "gpu_tile.buffer_load"(%scores) : (!sum) -> !s
    %e = math.exp2 %s : !s
    %p = arith.truncf %e : !s to !p
    %part = "gpu_tile.alloc"() {options = {}} : () -> !part
    "gpu_tile.buffer_store"(%p, %part) : (!p, !part) -> ()
    %v = "gpu_tile.transpose_view"(%k) {permutation = array<i32: 1, 0>} : (!slot) -> !turned
    "gpu_tile.tcgen05_mma"(%part, %v, %sum, %true) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!part, !turned, !sum, i1) -> ()
    %own = "gpu_tile.ring_slot"(%done, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%done, %own) {by = "products"} : (!b, i32) -> ()
    %over = "gpu_tile.ring_wait"(%done, %count) {previous = false} : (!b, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!b, i32) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  }
  return
}
