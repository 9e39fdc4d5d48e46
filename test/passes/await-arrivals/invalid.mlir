// Who waits at the end of a role must know how many slots it has filled.
// RUN: tilec opt %s --passes await-arrivals --target sm_90a --split-input-file --verify-diagnostics

// The while begins each time from the same count.
func.func @not_carried(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %end = scf.while (%there = %true, %count = %zero) : (i1, i32) -> (i32) {
      scf.condition(%there) %zero : i32
    } do {
    ^bb0(%from: i32):
      %fills = scf.for %i = %zero to %n step %one iter_args(%turn = %from) -> (i32) : i32 {
        // expected-error @below {{a loop does not carry the count of its ring on}}
        %at = "gpu_tile.ring_acquire"(%ring, %turn) : (!gpu_tile.ring, i32) -> i32
        %next = arith.addi %turn, %one : i32
        scf.yield %next : i32
      }
      %again = arith.cmpi slt, %fills, %n : i32
      scf.yield %again, %fills : i1, i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %zero) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %one) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
// Which turns acquire changes from one to the next.
func.func @some_turns(%n: i32) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 2 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.ring
  "gpu_tile.role"() ({
    %fills = scf.for %i = %zero to %n step %one iter_args(%turn = %zero) -> (i32) : i32 {
      %odd = arith.andi %i, %one : i32
      %taken = arith.cmpi eq, %odd, %one : i32
      scf.if %taken {
        // expected-error @below {{some turns of a loop acquire a slot, others do not}}
        %at = "gpu_tile.ring_acquire"(%ring, %turn) : (!gpu_tile.ring, i32) -> i32
      }
      %next = arith.addi %turn, %one : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32} : () -> ()
  "gpu_tile.role"() ({
    %at = "gpu_tile.ring_slot"(%ring, %zero) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_release"(%ring, %at, %one) {by = "once"} : (!gpu_tile.ring, i32, i32) -> ()
    gpu.yield
  }) {first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32} : () -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}
