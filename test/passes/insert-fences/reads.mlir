// What threads read is fenced in front of what lets a tensor load overwrite it; not what no load
// overwrites, nor what was loaded for good.
// RUN: tilec opt %s --passes insert-fences --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.ring

// CHECK-LABEL: @read_by_a_role
// CHECK: "gpu_tile.tma_load"
// CHECK: "gpu_tile.ring_wait"
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.ring_release"
// CHECK-NOT: "gpu_tile.fence"
func.func @read_by_a_role(%map: !map, %c: i32, %n: index) {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %far = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  "gpu_tile.role"() ({
    scf.for %k = %zero to %n step %one {
      %slot = "gpu_tile.ring_acquire"(%ring, %c) : (!ring, i32) -> i32
      "gpu_tile.tma_load"(%map, %s, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  scf.for %k = %zero to %n step %one {
    %slot = "gpu_tile.ring_wait"(%ring, %c) {previous = false} : (!ring, i32) -> i32
    %x = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    "gpu_tile.ring_release"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
    %z = "gpu_tile.buffer_load"(%far) : (!s) -> !t
    "gpu_tile.ring_release"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
  }
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.ring

// The first load brings what is read, the second overwrites it; what it brings stays.
// CHECK-LABEL: @loaded_twice
// CHECK: "gpu_tile.tma_load"
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "async_shared"}
// CHECK-NEXT: "gpu_tile.tma_load"
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK-NOT: "gpu_tile.fence"
func.func @loaded_twice(%map: !map, %c: i32) {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %slot = "gpu_tile.ring_slot"(%ring, %c) : (!ring, i32) -> i32
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.tma_load"(%map, %s, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
  %x = "gpu_tile.buffer_load"(%s) : (!s) -> !t
  "gpu_tile.tma_load"(%map, %s, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
  "gpu_tile.ring_release"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
  return
}

// -----
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>
!map = !gpu_tile.tensor_map
!ring = !gpu_tile.ring

// A product that is issued has its fragments.
// CHECK-LABEL: @fragments_of_a_product
// CHECK-NOT: "gpu_tile.fence"
func.func @fragments_of_a_product(%map: !map, %c: i32, %p: !p, %n: index) {
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %slot = "gpu_tile.ring_slot"(%ring, %c) : (!ring, i32) -> i32
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %b = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !s
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    "gpu_tile.tma_load"(%map, %s, %ring, %slot, %slot, %slot) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    %x = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    %y = arith.negf %x : !t
    %q = "gpu_tile.wgmma"(%y, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!t, !s, !p) -> !p
    "gpu_tile.ring_release"(%ring, %slot) {by = "warp"} : (!ring, i32) -> ()
  }
  return
}
