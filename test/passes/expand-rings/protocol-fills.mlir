// Rings of a kernel written by hand are played before they are expanded: what fills them.
// RUN: tilec opt %s --passes expand-rings --target sm_100a --num-warps 4 --split-input-file --verify-diagnostics

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map

// What agrees goes through.
func.func @agreed(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
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

// Nobody releases: the third turn never comes.
func.func @never_released(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_acquire' op waits for a slot that nobody passes on}}
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

// The slot is never full.
func.func @too_few_bytes(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_acquire' op waits for a slot that nobody passes on}}
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8200 : i32} : (!ring, i32) -> ()
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

func.func @filled_before(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.tma_load' op fills a slot that it has not acquired, or that is full}}
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

func.func @published_before(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      // expected-error @below {{'gpu_tile.ring_publish' op publishes a slot that it has not acquired}}
      "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
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

func.func @published_twice(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
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
      // expected-error @below {{'gpu_tile.ring_publish' op publishes a slot more than 1 times a turn}}
      "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
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

func.func @filled_behind(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 2 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.buffer_store' op fills a slot that it has published}}
      "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
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

func.func @another_number(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      // expected-error @below {{'gpu_tile.ring_announce' op names a slot that is no turn's of a ring}}
      "gpu_tile.ring_announce"(%ring, %n) {bytes = 8192 : i32} : (!ring, i32) -> ()
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
// A slot is a number like others: here turns are counted by it, and are those of the first slots again.
func.func @counted_by_a_slot(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
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
      %slot = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      %at = "gpu_tile.ring_wait"(%ring, %slot) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      // expected-error @below {{'gpu_tile.ring_release' op releases a slot more than 4 times a turn}}
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

func.func @never_published(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c2 step %one : i32 {
      // expected-error @below {{'gpu_tile.ring_acquire' op acquires a slot that is never published}}
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %one step %one : i32 {
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

// The third turn has the slot of the first.
func.func @acquired_again(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      // expected-error @below {{'gpu_tile.ring_acquire' op acquires turn 0 of a ring whose slot was released for a later one}}
      %old = "gpu_tile.ring_acquire"(%ring, %zero) : (!ring, i32) -> i32
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
!answer = !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>

func.func @asked_before(%map: !map, %x: !t) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %answer = "gpu_tile.alloc"() {options = {offset = 32768 : i32}} : () -> !answer
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 16 : i32} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.next_program' op publishes a slot that nobody has acquired for the turn}}
      "gpu_tile.next_program"(%answer, %ring, %at) : (!answer, !ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
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
!a = memref<?x?xbf16, strided<[?, 1]>>

// Threads arrive while their copies are under way.
func.func @arrives_before_its_copies(%x: !a) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.cp_async"(%x, %s, %true, %c0, %c0) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!a, !s, i1, index, index) -> ()
      // expected-error @below {{'gpu_tile.ring_publish' op publishes a slot that copies may still fill}}
      "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
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
!a = memref<?x?xbf16, strided<[?, 1]>>
#row = #gpu_tile.layout<"T(8,4):(8@1,1@0) V(8,16):(1@1,4@0)">

// So do copies of rows by number.
func.func @arrives_before_its_gathers(%x: !a, %ok: tensor<64x64xi1, #row>, %i: tensor<64x64xi32, #row>) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %zero = arith.constant 0 : i32
  %true = arith.constant true
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      "gpu_tile.cp_async_gather"(%x, %s, %true, %ok, %i, %i) {bytes = 16 : i32, cache = "cg"} : (!a, !s, i1, tensor<64x64xi1, #row>, tensor<64x64xi32, #row>, tensor<64x64xi32, #row>) -> ()
      // expected-error @below {{'gpu_tile.ring_publish' op publishes a slot that copies may still fill}}
      "gpu_tile.ring_publish"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!slots, i32) -> !s
      %y = "gpu_tile.buffer_load"(%s) : (!s) -> !t
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
