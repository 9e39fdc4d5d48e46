// Products read and write until somebody has waited for them.
// RUN: tilec opt %s --passes expand-rings --target sm_100a --num-warps 4 --split-input-file --verify-diagnostics

!ring = !gpu_tile.ring
!slots = !gpu_tile.buffer<tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!map = !gpu_tile.tensor_map
!p = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>

// Nobody has waited for the matrix instruction.
func.func @released_under_products(%map: !map, %x: !t, %p: !p) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
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
      %q = "gpu_tile.wgmma"(%s, %s, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
      // expected-error @below {{'gpu_tile.ring_release' op releases a slot that products may still read}}
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
!p = !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>

// A buffer that is no slot.
func.func @written_under_products(%map: !map, %x: !t, %p: !p) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 16384 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !slots
  %own = "gpu_tile.alloc"() {options = {offset = 32768 : i32}} : () -> !s
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %at) {bytes = 8192 : i32} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.tma_load' op writes what products may still read}}
      "gpu_tile.tma_load"(%map, %own, %ring, %at, %zero, %zero) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
      %full = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %q = "gpu_tile.wgmma"(%own, %own, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!sums = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sum = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>

// Products into tensor memory.
func.func @sums_agreed(%a: !a, %b: !b) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sums
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!sums, i32) -> !sum
      "gpu_tile.tcgen05_mma"(%a, %b, %s, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !sum, i1) -> ()
      "gpu_tile.ring_publish"(%ring, %at) {by = "products"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!sums, i32) -> !sum
      %y = "gpu_tile.buffer_load"(%s) : (!sum) -> !x
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!sums = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sum = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>

func.func @added_behind(%a: !a, %b: !b) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sums
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!sums, i32) -> !sum
      "gpu_tile.tcgen05_mma"(%a, %b, %s, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !sum, i1) -> ()
      "gpu_tile.ring_publish"(%ring, %at) {by = "products"} : (!ring, i32) -> ()
      // expected-error @below {{'gpu_tile.tcgen05_mma' op adds to a slot that it has published}}
      "gpu_tile.tcgen05_mma"(%a, %b, %s, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !sum, i1) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
      %s = "gpu_tile.slot"(%all, %at) : (!sums, i32) -> !sum
      %y = "gpu_tile.buffer_load"(%s) : (!sum) -> !x
      "gpu_tile.ring_release"(%ring, %at) {by = "warp"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!ring = !gpu_tile.ring
!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!sums = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!sum = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>

// A sum that is no slot; only a wait hears of the end of products.
func.func @read_under_products(%a: !a, %b: !b) attributes {tile.kernel, tile.explicit, tile.total_warps = 5 : i32} {
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 24576 : i32}} : () -> !ring
  %all = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !sums
  %own = "gpu_tile.alloc"() {options = {offset = 128 : i32}} : () -> !sum
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
      %at = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
      "gpu_tile.tcgen05_mma"(%a, %b, %own, %true) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !sum, i1) -> ()
      // expected-error @below {{'gpu_tile.buffer_load' op reads what products may still write}}
      %y = "gpu_tile.buffer_load"(%own) : (!sum) -> !x
      "gpu_tile.ring_publish"(%ring, %at) {by = "products"} : (!ring, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    scf.for %n = %zero to %c5 step %one : i32 {
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
