// Each role's loop over programs becomes a while of its own. The first one asks; one thread runs
// it, so one arrival is its, and one for each warp of the other.
// RUN: tilec opt %s --passes request-programs --target sm_100a --num-warps 4 | filecheck %s

!b = !gpu_tile.buffer<tensor<4x32xf32>, #gpu_tile.shared<"(32):(1)">>
!map = !gpu_tile.tensor_map

// CHECK-LABEL: @k
// CHECK: %[[ANSWERS:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<3x4xi32>, #gpu_tile.shared<"(4):(1)">>
// CHECK: %[[ASKED:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 3 : i32}
// CHECK: %[[FREE:.*]] = "gpu_tile.barrier_init"() {count = 5 : i32, options = {}, slots = 3 : i32}
func.func @k(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.persistent = "dynamic", tile.total_warps = 8 : i32} {
  %zero = arith.constant 0 : i32
  %n = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %all = arith.index_cast %n : index to i32
  // The fence and the sync that are there serve the new barriers, too.
  // CHECK-COUNT-1: gpu_tile.fence
  // CHECK-COUNT-1: gpu_tile.sync
  // CHECK-NOT: gpu_tile.sync
  %full = "gpu_tile.barrier_init"() {slots = 4 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 8 : i32, mode = "sync"} : () -> ()
  // CHECK: "gpu_tile.role"() ({
  "gpu_tile.role"() ({
    // CHECK: %[[FIRST:.*]] = "gpu_tile.cta_id"
    %first = "gpu_tile.cta_id"() : () -> i32
    %step = "gpu_tile.num_ctas"() : () -> i32
    // CHECK: scf.while (%[[MORE:.*]] = %true{{.*}}, %[[P0:.*]] = %[[FIRST]], %[[C0:.*]] = %c0{{.*}}, %[[N0:.*]] = %{{.*}}) : (i1, i32, i32, i32) -> (i32, i32, i32) {
    // CHECK-NEXT: scf.condition(%[[MORE]]) %[[P0]], %[[C0]], %[[N0]] : i32, i32, i32
    // CHECK: ^bb0(%[[P:.*]]: i32, %[[C:.*]]: i32, %[[N:.*]]: i32):
    // CHECK: %[[AT:.*]]:2 = "gpu_tile.ring_position"(%[[C]]) {slots = 3 : i32}
    // CHECK: %[[ANSWER:.*]] = "gpu_tile.slot"(%[[ANSWERS]], %[[AT]]#0)
    // CHECK: %[[TURN:.*]] = arith.xori %[[AT]]#1, %true
    // CHECK: "gpu_tile.barrier_wait"(%[[FREE]], %[[AT]]#0, %[[TURN]])
    // CHECK: "gpu_tile.barrier_expect"(%[[ASKED]], %[[AT]]#0) {bytes = 16 : i32}
    // CHECK: "gpu_tile.next_program"(%[[ANSWER]], %[[ASKED]], %[[AT]]#0)
    %last = scf.for %p = %first to %all step %step iter_args(%count = %zero) -> (i32) : i32 {
      // CHECK: "gpu_tile.barrier_expect"({{.*}}) {bytes = 128 : i32}
      %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 4 : i32} : (i32) -> (i32, i1)
      "gpu_tile.barrier_expect"(%full, %slot) {bytes = 128 : i32} : (!gpu_tile.barrier, i32) -> ()
      %next = arith.addi %count, %p : i32
      scf.yield %next : i32
    }
    // CHECK: %[[NEXT:.*]] = arith.addi %[[N]], %[[P]]
    // CHECK: "gpu_tile.barrier_wait"(%[[ASKED]], %[[AT]]#0, %[[AT]]#1)
    // CHECK: %[[READ:.*]]:4 = "gpu_tile.next_program_read"(%[[ANSWER]])
    // CHECK: "gpu_tile.barrier_arrive"(%[[FREE]], %[[AT]]#0) {per = "once"}
    // CHECK: %[[LATER:.*]] = arith.addi %[[C]], %c1
    // CHECK: scf.yield %[[READ]]#0, %[[READ]]#1, %[[LATER]], %[[NEXT]]
    gpu.yield
  // CHECK: name = "load"
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  // CHECK: "gpu_tile.role"() ({
  // CHECK-NOT: gpu_tile.next_program"
  "gpu_tile.role"() ({
    %first = "gpu_tile.cta_id"() : () -> i32
    %step = "gpu_tile.num_ctas"() : () -> i32
    // CHECK: scf.while
    scf.for %p = %first to %all step %step : i32 {
      // CHECK: tile.store
      %at = arith.index_cast %p : i32 to index
      %x = arith.constant dense<1.0> : tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
      "tile.store"(%x, %a, %at) {dims = array<i32: 0>, options = {}} : (tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>, memref<?xf32, strided<[1]>>, index) -> ()
      // CHECK: "gpu_tile.next_program_read"
      // CHECK: "gpu_tile.barrier_arrive"(%[[FREE]], %{{.*}}) {per = "warp"}
    }
    gpu.yield
  // CHECK: name = "compute"
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  // CHECK-NOT: scf.for
  return
}
