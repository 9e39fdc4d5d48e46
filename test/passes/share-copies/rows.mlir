// Two CTAs, one above the other: each loads half of the right operand for both.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,insert-tensor-stores,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma,allocate-shared,insert-fences,insert-barriers,share-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<64x128xf32>

// CHECK-LABEL: @matmul
// CHECK-DAG: %[[PLACE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK-DAG: %[[BOTH:.*]] = "gpu_tile.cluster_mask"() {axes = array<i32: 0>}
// One warpgroup of each CTA reads a slot.
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, {{.*}}releases = 2 : i32,
// CHECK-NOT: gpu_tile.cluster_sync
// CHECK: "gpu_tile.role"
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_acquire"(%[[RING]],
// All of both operands arrives, whoever loads it.
// CHECK: "gpu_tile.ring_announce"(%[[RING]], %[[SLOT]]) {bytes = 24576 : i32}
// CHECK: "gpu_tile.tma_load"
// CHECK: %[[STEP:.*]] = arith.muli %[[PLACE]], %c64
// CHECK: %[[N:.*]] = arith.addi %{{.*}}, %[[STEP]] : i32
// CHECK: %[[HALF:.*]] = "gpu_tile.view"(%{{[^,]*}}, %{{[^,]*}}, %[[STEP]]) : {{.*}} -> !gpu_tile.buffer<tensor<64x64xbf16>
// CHECK: "gpu_tile.tma_multicast"(%{{[^,]*}}, %[[HALF]], %[[RING]], %[[SLOT]], %[[BOTH]], %{{[^,]*}}, %[[N]])
// CHECK: name = "load"
// CHECK: "gpu_tile.ring_wait"(%[[RING]],
// CHECK: "gpu_tile.ring_release"(%[[RING]], %{{[^,]*}}, %[[BOTH]]) {by = "warpgroup"}
// CHECK: "gpu_tile.ring_release"(%[[RING]], %{{[^,]*}}, %[[BOTH]]) {by = "warpgroup"}
// CHECK-NOT: gpu_tile.ring_release
// CHECK: name = "compute"
// CHECK-NEXT: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK-NEXT: return
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: !o) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %bn = arith.constant 128 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %x = arith.muli %i, %bk : index
  %y = arith.muli %j, %bn : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %x, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %y) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %x, %y) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}
