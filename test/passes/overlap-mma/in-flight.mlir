// An accumulator that only matrix instructions touch stays in flight over the back edge.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 12 : i32}
// CHECK: name = "load"
// CHECK: %[[START:.*]] = "gpu_tile.wgmma_fence"
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[K:.*]] = %[[LOWER:.*]] to %[[UPPER:.*]] step %{{.*}} iter_args(%[[ACC:.*]] = %[[START]], %[[N:.*]] = %{{.*}}) -> (!gpu_tile.pending<{{.*}}, i32)
// CHECK-NOT: gpu_tile.wgmma_fence
// CHECK: %[[NEXT:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[ACC]])
// CHECK: %[[SAFE:.*]] = "gpu_tile.wgmma_wait"(%[[NEXT]]) {pending = 1 : i32}
// The slot of the iteration before is free now, if there was one.
// CHECK: %[[LATER:.*]] = arith.cmpi slt, %[[LOWER]], %[[K]]
// CHECK: scf.if %[[LATER]] {
// CHECK: %[[BEFORE:.*]] = arith.subi %[[N]], %{{.*}} : i32
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[BEFORE]])
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[P]]) {by = "warpgroup"}
// CHECK-NOT: gpu_tile.ring_release
// CHECK: scf.yield %[[SAFE]]
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#0) {pending = 0 : i32}
// The last slot, unless the loop ran zero times.
// CHECK: %[[RAN:.*]] = arith.cmpi slt, %[[LOWER]], %[[UPPER]]
// CHECK: scf.if %[[RAN]] {
// CHECK: %[[BEHIND:.*]] = arith.subi %[[LOOP]]#1
// CHECK: %[[LAST:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[BEHIND]])
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[LAST]]) {by = "warpgroup"}
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
