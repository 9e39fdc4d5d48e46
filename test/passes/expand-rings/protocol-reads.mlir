// Rings of a kernel written by hand are played before they are expanded: what empties them.
// RUN: tilec opt %s --passes expand-rings --target sm_100a --num-warps 4 --split-input-file --verify-diagnostics

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @read_before(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      // expected-error @below {{'gpu_tile.buffer_load' op reads a slot that was not waited for}}
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      %late = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @read_behind(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.buffer_load' op reads a slot that it has released}}
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @released_before(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      // expected-error @below {{'gpu_tile.ring_release' op releases a slot that it has not waited for}}
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

// Each of four warps once, not each thread.
func.func @released_twice(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      // expected-error @below {{'gpu_tile.ring_release' op releases a slot more than 4 times a turn}}
      "gpu_tile.ring_release"(%ring, %at) {by = "thread"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @never_released_at_the_end(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c2 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c2 step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_wait' op waits for a slot that is never released}}
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @left_over(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c2 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %one step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_wait' op reads 1 turns of 2 that are filled}}
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

func.func @waited_for_again(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.ring_wait' op waits for turn 0 of a ring whose slot was filled again}}
      %old = "gpu_tile.ring_wait"(%ring, %zero) {previous = false} : (!ring, i32) -> i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
