// Prologue, steady loop, drain.
// RUN: tilec opt %s --passes pipeline-loops,canonicalize,cse --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @three_stages
func.func @three_stages(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
    // CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
    // CHECK-DAG: %[[AHEAD:.*]] = arith.constant 128 : index
    // Groups of copies order it: nobody counts what fills or empties it.
    // CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 0 : i32, options = {}, releases = 0 : i32, slots = 3 : i32}
    // CHECK: %[[BUFFER:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<3x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
    // The first copy flies if there is a first iteration, the second if there is a second.
    // CHECK: %[[FIRST:.*]] = arith.cmpi sgt, %{{.*}}, %c0
    // CHECK: %[[S0:.*]] = "gpu_tile.slot"(%[[BUFFER]], %[[ZERO]])
    // CHECK-NEXT: "gpu_tile.cp_async"(%{{.*}}, %[[S0]], %[[FIRST]], %c0, %c0)
    // CHECK-NEXT: gpu_tile.cp_async_commit
    // CHECK: %[[SECOND:.*]] = arith.cmpi sgt, %{{.*}}, %c64
    // CHECK: "gpu_tile.cp_async"(%{{.*}}, %{{.*}}, %[[SECOND]], %c0, %c64)
    // CHECK-NEXT: gpu_tile.cp_async_commit
    // CHECK: scf.for %[[K:.*]] = %c0 to %{{.*}} step %c64 iter_args(%[[N:.*]] = %[[ZERO]]) -> (i32)
    // CHECK-NEXT: "gpu_tile.cp_async_wait"() {pending = 1 : i32}
    // CHECK-NEXT: %[[NOW:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[N]])
    // CHECK-NEXT: %[[SLOT:.*]] = "gpu_tile.slot"(%[[BUFFER]], %[[NOW]])
    // CHECK-NEXT: %[[LATER:.*]] = arith.addi %[[N]], %[[TWO]]
    // CHECK-NEXT: %[[THEN:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[LATER]])
    // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[K]], %[[AHEAD]]
    // CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[AT]]
    // CHECK-NEXT: %[[FILL:.*]] = "gpu_tile.slot"(%[[BUFFER]], %[[THEN]])
    // CHECK-NEXT: "gpu_tile.cp_async"(%{{.*}}, %[[FILL]], %[[EXISTS]], %c0, %[[AT]])
    // CHECK-NEXT: gpu_tile.cp_async_commit
    // CHECK-NEXT: "gpu_tile.buffer_load"(%[[SLOT]])
    // CHECK: arith.addi %[[N]], %{{.*}}
    // CHECK: }
    // The demand is met: it does not stand twice.
    // CHECK-NOT: tile.stages
    // CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 3 : i32}
  return
}

// Undemanded: as many as fit into half of the shared memory, four at the most.
// CHECK-LABEL: @four_at_the_most
// CHECK: gpu_tile.buffer<tensor<4x16x64xf16>
func.func @four_at_the_most(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
