// Each role's loop over programs becomes a while of its own. The first one asks; one thread runs
// it, so one release is its, and one for each warp of the other.
// RUN: tilec opt %s --passes request-programs --target sm_100a --num-warps 4 | filecheck %s

!b = !gpu_tile.buffer<tensor<4x32xf32>, #gpu_tile.shared<"(32):(1)">>
!map = !gpu_tile.tensor_map

// CHECK-LABEL: @k
// Behind the ring that is there.
// CHECK-NEXT: "gpu_tile.make_ring"() {{.*}}slots = 4 : i32}
// CHECK-NEXT: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 5 : i32, slots = 3 : i32}
// CHECK-NEXT: %[[ANSWERS:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<3x4xi32>, #gpu_tile.shared<"(4):(1)">>
func.func @k(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.persistent = "dynamic", tile.total_warps = 8 : i32} {
  %own = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %zero = arith.constant 0 : i32
  %n = "tile.num_programs"() {axis = 0 : i32} : () -> index
  %all = arith.index_cast %n : index to i32
  // CHECK: "gpu_tile.role"() ({
  "gpu_tile.role"() ({
    // CHECK: %[[FIRST:.*]] = "gpu_tile.cta_id"
    %first = "gpu_tile.cta_id"() : () -> i32
    %step = "gpu_tile.num_ctas"() : () -> i32
    // CHECK: scf.while (%[[MORE:.*]] = %true{{.*}}, %[[P0:.*]] = %[[FIRST]], %[[C0:.*]] = %c0{{.*}}, %[[N0:.*]] = %{{.*}}) : (i1, i32, i32, i32) -> (i32, i32, i32) {
    // CHECK-NEXT: scf.condition(%[[MORE]]) %[[P0]], %[[C0]], %[[N0]] : i32, i32, i32
    // CHECK: ^bb0(%[[P:.*]]: i32, %[[C:.*]]: i32, %[[N:.*]]: i32):
    // CHECK-NEXT: %[[AT:.*]] = "gpu_tile.ring_acquire"(%[[RING]], %[[C]])
    // CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[AT]]) {bytes = 16 : i32}
    // CHECK-NEXT: %[[ANSWER:.*]] = "gpu_tile.slot"(%[[ANSWERS]], %[[AT]])
    // CHECK-NEXT: "gpu_tile.next_program"(%[[ANSWER]], %[[RING]], %[[AT]])
    %last = scf.for %p = %first to %all step %step iter_args(%count = %zero) -> (i32) : i32 {
      // CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
      "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
      %next = arith.addi %count, %p : i32
      scf.yield %next : i32
    }
    // CHECK: %[[NEXT:.*]] = arith.addi %[[N]], %[[P]]
    // CHECK-NEXT: %[[FULL:.*]] = "gpu_tile.ring_wait"(%[[RING]], %[[C]]) {previous = false}
    // CHECK-NEXT: %[[THERE:.*]] = "gpu_tile.slot"(%[[ANSWERS]], %[[FULL]])
    // CHECK-NEXT: %[[READ:.*]]:4 = "gpu_tile.next_program_read"(%[[THERE]])
    // CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[FULL]]) {by = "once"}
    // CHECK: %[[LATER:.*]] = arith.addi %[[C]], %c1
    // CHECK: scf.yield %[[READ]]#0, %[[READ]]#1, %[[LATER]], %[[NEXT]]
    gpu.yield
  // CHECK: name = "load"
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  // CHECK: "gpu_tile.role"() ({
  // CHECK-NOT: gpu_tile.next_program"
  // CHECK-NOT: gpu_tile.ring_acquire
  "gpu_tile.role"() ({
    %first = "gpu_tile.cta_id"() : () -> i32
    %step = "gpu_tile.num_ctas"() : () -> i32
    // CHECK: scf.while
    scf.for %p = %first to %all step %step : i32 {
      // CHECK: tile.store
      %at = arith.index_cast %p : i32 to index
      %x = arith.constant dense<1.0> : tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
      "tile.store"(%x, %a, %at) {dims = array<i32: 0>, options = {}} : (tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>, memref<?xf32, strided<[1]>>, index) -> ()
      // CHECK: %[[TOO:.*]] = "gpu_tile.ring_wait"(%[[RING]], %{{.*}}) {previous = false}
      // CHECK: "gpu_tile.next_program_read"
      // CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[TOO]]) {by = "warp"}
    }
    gpu.yield
  // CHECK: name = "compute"
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  // CHECK-NOT: scf.for
  return
}
