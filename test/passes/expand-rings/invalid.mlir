// All threads meet behind the making of rings, and whoever uses one knows how many slots it has.
// RUN: tilec opt %s --passes expand-rings --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

func.func @in_a_branch(%yes: i1) attributes {tile.kernel} {
  scf.if %yes {
    // expected-error @below {{a ring is made in the kernel's own body}}
    %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  }
  return
}

// -----
func.func @in_a_role() attributes {tile.kernel} {
  "gpu_tile.role"() ({
    // expected-error @below {{a ring is made in the kernel's own body}}
    %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
func.func @slot_of_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  %slot = "gpu_tile.ring_slot"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @acquired_of_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @waited_for_of_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  %slot = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!gpu_tile.ring, i32) -> i32
  return
}

// -----
func.func @announced_to_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  "gpu_tile.ring_announce"(%ring, %n) {bytes = 8 : i32} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @published_to_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  "gpu_tile.ring_publish"(%ring, %n) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @released_to_an_argument(%ring: !gpu_tile.ring, %n: i32) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  "gpu_tile.ring_release"(%ring, %n) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
  return
}

// -----
func.func @copied_to_an_argument(%ring: !gpu_tile.ring, %n: i32, %map: !gpu_tile.tensor_map, %s: !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  "gpu_tile.tma_load"(%map, %s, %ring, %n, %n, %n) {cache = "normal"} : (!gpu_tile.tensor_map, !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>, !gpu_tile.ring, i32, i32, i32) -> ()
  return
}

// -----
func.func @requested_to_an_argument(%ring: !gpu_tile.ring, %n: i32, %a: !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>) attributes {tile.kernel} {
  // expected-error @below {{a ring is known by the 'gpu_tile.make_ring' that made it}}
  "gpu_tile.next_program"(%a, %ring, %n) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, !gpu_tile.ring, i32) -> ()
  return
}
