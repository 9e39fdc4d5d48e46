// Rings of a kernel written by hand: roles that have warps in common do not run side by side.
// RUN: tilec opt %s --passes expand-rings --target sm_100a --num-warps 4 --split-input-file --verify-diagnostics

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

// The third turn never comes: who gives slots back begins when all are filled.
func.func @shared(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %turns = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_acquire' op waits for a slot that nobody passes on: role 'compute' has warps of role 'load', and begins when that has ended}}
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 1 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 1 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

// All slots are filled in front of who reads them.
func.func @one_after_the_other(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %turns = arith.constant 2 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 1 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 1 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

// One thread fills the ring: its other warps pass by, and may have another role.
func.func @idle(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %turns = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %turns step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 1 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
