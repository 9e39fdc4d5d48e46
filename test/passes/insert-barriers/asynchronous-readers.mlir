// Tensor cores and tensor stores read until the wait that surely ends them; whoever overwrites needs
// that wait and a sync. A tensor load needs its buffer free.
// RUN: tilec opt %s --passes insert-barriers --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>

// CHECK-LABEL: @refill
// CHECK: scf.for
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.wgmma"
// CHECK-NEXT: "gpu_tile.wgmma_wait"
// CHECK-NEXT: scf.yield
func.func @refill(%x: !t, %p: !p, %n: index, %zero: index, %one: index) {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %last = scf.for %i = %zero to %n step %one iter_args(%acc = %p) -> (!p) {
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    %q = "gpu_tile.wgmma"(%s, %s, %acc) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
    %r = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!p) -> !p
    scf.yield %r : !p
  }
  return
}

// -----
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!ring = !gpu_tile.ring
!map = !gpu_tile.tensor_map

// The readers of a tensor load wait for its ring, so nothing stands between; the next load must
// know that all have read.
// CHECK-LABEL: @tensor_load
// CHECK: scf.for
// CHECK-NEXT: "gpu_tile.ring_slot"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.tma_load"
// CHECK-NEXT: "gpu_tile.ring_wait"
// CHECK-NEXT: "gpu_tile.wgmma"
// CHECK-NEXT: "gpu_tile.wgmma_wait"
// CHECK-NEXT: scf.yield
func.func @tensor_load(%map: !map, %c: i32, %p: !p, %n: index, %zero: index, %one: index) {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 8192 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %last = scf.for %i = %zero to %n step %one iter_args(%acc = %p) -> (!p) {
    %slot = "gpu_tile.ring_slot"(%ring, %c) : (!ring, i32) -> i32
    "gpu_tile.tma_load"(%map, %s, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    %full = "gpu_tile.ring_wait"(%ring, %c) {previous = false} : (!ring, i32) -> i32
    %q = "gpu_tile.wgmma"(%s, %s, %acc) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
    %r = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!p) -> !p
    scf.yield %r : !p
  }
  return
}
