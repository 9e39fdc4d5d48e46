// A fence stands behind ordinary writes that tensor cores or tensor stores read, one for a row of
// them; others get none.
// RUN: tilec opt %s --passes insert-fences,insert-barriers --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!n = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>

// CHECK-LABEL: @two_operands
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.wgmma_fence"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.wgmma"
func.func @two_operands(%a: !t, %b: !t, %c: !acc) attributes {tile.kernel} {
  %sa = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %sb = "gpu_tile.alloc"() {options = {offset = 8192 : i32}} : () -> !n
  "gpu_tile.buffer_store"(%a, %sa) : (!t, !s) -> ()
  "gpu_tile.buffer_store"(%b, %sb) : (!t, !n) -> ()
  %p = "gpu_tile.wgmma_fence"(%c) : (!acc) -> !p
  %q = "gpu_tile.wgmma"(%sa, %sb, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !n, !p) -> !p
  %r = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!p) -> !acc
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map

// The fence stands in front of the barrier that tells the issuing thread.
// CHECK-LABEL: @tensor_store
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.fence"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.tma_store"
// CHECK-NEXT: "gpu_tile.tma_commit"
// The next tile may be put there once the copy has read this one, and everybody knows.
// CHECK-NEXT: "gpu_tile.tma_wait"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.fence"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.tma_store"
func.func @tensor_store(%x: !t, %y: !t, %map: !map, %i: i32) {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  "gpu_tile.tma_store"(%s, %map, %i, %i) {combine = "none"} : (!s, !map, i32, i32) -> ()
  "gpu_tile.tma_commit"() : () -> ()
  "gpu_tile.tma_wait"() {pending = 0 : i32, read = true} : () -> ()
  "gpu_tile.buffer_store"(%y, %s) : (!t, !s) -> ()
  "gpu_tile.tma_store"(%s, %map, %i, %i) {combine = "none"} : (!s, !map, i32, i32) -> ()
  "gpu_tile.tma_commit"() : () -> ()
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// CHECK-LABEL: @read_by_threads
// CHECK-NOT: gpu_tile.fence
func.func @read_by_threads(%x: !t) {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// What a tensor load overwrites was written by another proxy.
// CHECK-LABEL: @overwritten_by_a_tensor_load
// CHECK: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.buffer_store"
// CHECK-NEXT: "gpu_tile.fence"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.tma_load"
// CHECK-NEXT: "gpu_tile.buffer_store"
// CHECK-NOT: "gpu_tile.fence"
func.func @overwritten_by_a_tensor_load(%x: !t, %map: !gpu_tile.tensor_map, %full: !gpu_tile.barrier, %i: i32) {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %same = "gpu_tile.alloc"() {options = {offset = 4096 : i32}} : () -> !s
  %far = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  "gpu_tile.buffer_store"(%x, %far) : (!t, !s) -> ()
  "gpu_tile.buffer_store"(%x, %same) : (!t, !s) -> ()
  "gpu_tile.tma_load"(%map, %s, %full, %i, %i, %i) {cache = "normal"} : (!gpu_tile.tensor_map, !s, !gpu_tile.barrier, i32, i32, i32) -> ()
  "gpu_tile.buffer_store"(%x, %far) : (!t, !s) -> ()
  return
}
