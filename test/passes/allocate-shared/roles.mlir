// A ring has 8 bytes a slot and counted side for itself, mbarriers 8 a slot. Roles run side by side: no memory of one is another's;
// one role alone uses its own again.
// RUN: tilec opt %s --passes allocate-shared --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!s = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>

// CHECK-LABEL: @no_reuse_between_roles
// CHECK-SAME: tile.shared_bytes = 1192 : i32
// CHECK: "gpu_tile.barrier_init"() {count = 1 : i32, options = {offset = 1104 : i32}, slots = 5 : i32}
// Both sides, one, none.
// CHECK: "gpu_tile.make_ring"() {fills = 1 : i32, options = {offset = 1024 : i32}, releases = 4 : i32, slots = 5 : i32}
// CHECK: "gpu_tile.make_ring"() {fills = 1 : i32, options = {offset = 1144 : i32}, releases = 0 : i32, slots = 3 : i32}
// CHECK: "gpu_tile.make_ring"() {fills = 0 : i32, options = {offset = 0 : i32}, releases = 0 : i32, slots = 7 : i32}
// CHECK: "gpu_tile.make_ring"() {fills = 0 : i32, options = {offset = 1168 : i32}, releases = 2 : i32, slots = 3 : i32}
// CHECK: gpu_tile.role
// CHECK: options = {offset = 0 : i32}
// CHECK: options = {offset = 0 : i32}
// CHECK: gpu_tile.role
// CHECK: options = {offset = 512 : i32}
// CHECK: options = {offset = 0 : i32}
func.func @no_reuse_between_roles(%x: !t) attributes {tile.kernel, tile.total_warps = 8 : i32} {
  %b = "gpu_tile.barrier_init"() {slots = 5 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
  %both = "gpu_tile.make_ring"() {slots = 5 : i32, fills = 1 : i32, releases = 4 : i32, options = {}} : () -> !gpu_tile.ring
  %full = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %none = "gpu_tile.make_ring"() {slots = 7 : i32, fills = 0 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %free = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 2 : i32, options = {}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %s = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    %r = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%x, %r) : (!t, !s) -> ()
    gpu.yield
  }) {name = "first", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    %s = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    gpu.yield
  }) {name = "second", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 8 : i32, mode = "sync"} : () -> ()
  %s = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>

// Tensor cores read until they were waited for, not until the instruction.
// CHECK-LABEL: @read_until_the_wait
// CHECK: options = {offset = 0 : i32}
// CHECK: "gpu_tile.wgmma"
// CHECK: options = {offset = 8192 : i32}
// CHECK: "gpu_tile.wgmma_wait"
// CHECK: options = {offset = 0 : i32}
func.func @read_until_the_wait(%x: !t, %p: !p) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {}} : () -> !s
  %q = "gpu_tile.wgmma"(%s, %s, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
  %r = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.buffer_store"(%x, %r) : (!t, !s) -> ()
  %w = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!p) -> !acc
  %u = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.buffer_store"(%x, %u) : (!t, !s) -> ()
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>

// A tensor store that is waited for behind the loop still reads when the next iteration begins.
// CHECK-LABEL: @read_into_the_next_iteration
// CHECK: scf.for
// CHECK: options = {offset = 0 : i32}
// CHECK: options = {offset = 8192 : i32}
// CHECK: "gpu_tile.tma_store"
func.func @read_into_the_next_iteration(%x: !t, %map: !gpu_tile.tensor_map, %i: i32, %n: index, %zero: index, %one: index) attributes {tile.kernel} {
  scf.for %k = %zero to %n step %one {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    %r = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%x, %r) : (!t, !s) -> ()
    "gpu_tile.tma_store"(%r, %map, %i, %i) {combine = "none"} : (!s, !gpu_tile.tensor_map, i32, i32) -> ()
    "gpu_tile.tma_commit"() : () -> ()
  }
  "gpu_tile.tma_wait"() {pending = 0 : i32, read = true} : () -> ()
  return
}
