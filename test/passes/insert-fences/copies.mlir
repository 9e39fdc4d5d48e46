// What cp.async brings is written like by a store: fenced behind the wait, or, where only a ring
// tells that it is there, in front of the reader.
// RUN: tilec opt %s --passes insert-fences --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>

// CHECK-LABEL: @waited_for
// CHECK: "gpu_tile.cp_async_wait"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.wgmma"
func.func @waited_for(%a: !m, %yes: i1, %i: index, %p: !p) {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  "gpu_tile.cp_async_commit"() : () -> ()
  "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
  %q = "gpu_tile.wgmma"(%s, %s, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!ring = !gpu_tile.ring

// CHECK-LABEL: @published
// CHECK: "gpu_tile.ring_publish"
// CHECK-NEXT: "gpu_tile.ring_wait"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.wgmma"
func.func @published(%a: !m, %yes: i1, %i: index, %p: !p, %n: i32) {
  %full = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 128 : i32, releases = 0 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %slot = "gpu_tile.ring_slot"(%full, %n) : (!ring, i32) -> i32
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  "gpu_tile.ring_publish"(%full, %slot) {by = "copies"} : (!ring, i32) -> ()
  %there = "gpu_tile.ring_wait"(%full, %n) {previous = false} : (!ring, i32) -> i32
  %q = "gpu_tile.wgmma"(%s, %s, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!ring = !gpu_tile.ring

// CHECK-LABEL: @stored_by_a_role
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.ring_publish"
// CHECK-NOT: "gpu_tile.fence"
func.func @stored_by_a_role(%x: !t, %p: !p, %n: i32) {
  %full = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 4 : i32, releases = 0 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.role"() ({
    %slot = "gpu_tile.ring_slot"(%full, %n) : (!ring, i32) -> i32
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    "gpu_tile.ring_publish"(%full, %slot) {by = "warp"} : (!ring, i32) -> ()
    gpu.yield
  }) {name = "fill", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    %there = "gpu_tile.ring_wait"(%full, %n) {previous = false} : (!ring, i32) -> i32
    %q = "gpu_tile.wgmma"(%s, %s, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
    gpu.yield
  }) {name = "use", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
