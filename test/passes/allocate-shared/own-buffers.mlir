// What warps store through is theirs as long as the kernel runs: a copy that nobody waits for here may still read it. No other buffer
// gets its bytes, and no warp waits for another in front of it.
// RUN: tilec opt %s --passes allocate-shared,insert-barriers --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!r = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>

// CHECK-LABEL: @stores
// CHECK: "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK: gpu_tile.warp_tma_store
// CHECK-NOT: gpu_tile.sync
// CHECK: gpu_tile.warp_tma_store
// CHECK: "gpu_tile.alloc"() {options = {offset = 8192 : i32}}
func.func @stores(%c: !m, %x: !acc, %y: !t, %i: i32) attributes {tile.kernel} {
  %map = "gpu_tile.make_tensor_map"(%c) {box = array<i32: 16, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !gpu_tile.tensor_map
  %s = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !gpu_tile.tensor_map, i32, i32) -> ()
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %i) {pending = 0 : i32} : (!acc, !s, !gpu_tile.tensor_map, i32, i32) -> ()
  %r = "gpu_tile.alloc"() {options = {}} : () -> !r
  "gpu_tile.buffer_store"(%y, %r) : (!t, !r) -> ()
  return
}

// Answers to requests for programs: the ring's turns order who asks and who reads.
// CHECK-LABEL: @answers
// CHECK: "gpu_tile.alloc"() {options = {offset = 528 : i32}}
// CHECK: gpu_tile.next_program
// CHECK-NOT: gpu_tile.sync
// CHECK: gpu_tile.next_program_read
// CHECK: "gpu_tile.alloc"() {options = {offset = 0 : i32}}
!a = !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>
func.func @answers(%y: !t, %n: i32) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !gpu_tile.ring
  %s = "gpu_tile.alloc"() {options = {}} : () -> !a
  %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  "gpu_tile.ring_announce"(%ring, %slot) {bytes = 16 : i32} : (!gpu_tile.ring, i32) -> ()
  "gpu_tile.next_program"(%s, %ring, %slot) : (!a, !gpu_tile.ring, i32) -> ()
  %full = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!gpu_tile.ring, i32) -> i32
  %there, %p, %q, %o = "gpu_tile.next_program_read"(%s) : (!a) -> (i1, i32, i32, i32)
  %r = "gpu_tile.alloc"() {options = {}} : () -> !r
  "gpu_tile.buffer_store"(%y, %r) : (!t, !r) -> ()
  return
}
