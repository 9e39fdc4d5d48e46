// The second product goes an iteration ahead; the first, which stays, reads the same tile. So does
// its release, behind both.
// RUN: tilec opt %s --passes rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!slots = !gpu_tile.buffer<tensor<6x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!sum = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),1@col)">>
!s = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @one_tile
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {{.*}}slots = 6 : i32}
// CHECK-NOT: gpu_tile.ring_release
// CHECK: scf.for
// CHECK: scf.if
// CHECK: "gpu_tile.ring_wait"(%[[RING]],
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK-NEXT: "gpu_tile.ring_publish"
// CHECK-NEXT: }
// CHECK: %[[AT:.*]] = "gpu_tile.ring_slot"(%[[RING]],
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %true)
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[AT]]) {by = "products"}
// CHECK-NOT: gpu_tile.ring_release
// CHECK: math.exp2
// CHECK-NOT: gpu_tile.ring_release
func.func @one_tile(%begin: i32, %end: i32, %out: memref<?x?xf32, strided<[?, 1]>>, %row: index) attributes {tile.kernel} {
  %ring = "gpu_tile.make_ring"() {slots = 6 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  %done = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %scored = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !b
  %q = "gpu_tile.alloc"() {options = {}} : () -> !slot
  %slots = "gpu_tile.alloc"() {options = {}} : () -> !slots
  %sum = "gpu_tile.alloc"() {options = {}} : () -> !sum
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  %last = scf.for %n = %begin to %end step %one iter_args(%count = %zero) -> (i32) : i32 {
    %at = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!b, i32) -> i32
    %k = "gpu_tile.slot"(%slots, %at) : (!slots, i32) -> !slot
    "gpu_tile.tcgen05_mma"(%q, %k, %sum, %true) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!slot, !slot, !sum, i1) -> ()
    %own = "gpu_tile.ring_slot"(%done, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%done, %own) {by = "products"} : (!b, i32) -> ()
    %over = "gpu_tile.ring_wait"(%done, %count) {previous = false} : (!b, i32) -> i32
    %scores = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.tcgen05_mma"(%q, %k, %scores, %false) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!slot, !slot, !sum, i1) -> ()
    "gpu_tile.ring_release"(%ring, %at) {by = "products"} : (!b, i32) -> ()
    %each = "gpu_tile.ring_slot"(%scored, %count) : (!b, i32) -> i32
    "gpu_tile.ring_publish"(%scored, %each) {by = "products"} : (!b, i32) -> ()
    %there = "gpu_tile.ring_wait"(%scored, %count) {previous = false} : (!b, i32) -> i32
    %s = "gpu_tile.buffer_load"(%scores) : (!sum) -> !s
    %e = math.exp2 %s : !s
    "tile.store"(%e, %out, %row, %row) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  }
  return
}
