// One warp fills the ring, and comes alone, since no registers move; the others compute; scalars are computed in both.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK-SAME: tile.total_warps = 5 : i32
// One warpgroup reads a slot.
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 12 : i32}
// CHECK: %[[A:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<12x64x64xbf16>
// CHECK: %[[B:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<12x64x64xbf16>
// CHECK: "gpu_tile.role"
// The tiles are not carried here.
// CHECK: scf.for %{{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (i32)
// CHECK: %[[P:.*]] = "gpu_tile.ring_acquire"(%[[RING]], %[[N]])
// CHECK-NEXT: %[[SA:.*]] = "gpu_tile.slot"(%[[A]], %[[P]])
// CHECK-NEXT: %[[SB:.*]] = "gpu_tile.slot"(%[[B]], %[[P]])
// CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[P]]) {bytes = 16384 : i32}
// CHECK: "gpu_tile.tma_load"(%{{[^,]*}}, %[[SA]], %[[RING]], %[[P]],
// CHECK: "gpu_tile.tma_load"(%{{[^,]*}}, %[[SB]], %[[RING]], %[[P]],
// CHECK-NOT: gpu_tile.wgmma
// CHECK: first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32
// CHECK: "gpu_tile.role"
// CHECK-NOT: gpu_tile.tma_load
// CHECK: %[[Q:.*]] = "gpu_tile.ring_wait"(%[[RING]], %{{.*}}) {previous = false}
// CHECK-NEXT: %[[RA:.*]] = "gpu_tile.slot"(%[[A]], %[[Q]])
// CHECK-NEXT: %[[RB:.*]] = "gpu_tile.slot"(%[[B]], %[[Q]])
// CHECK: "gpu_tile.wgmma"(%[[RA]], %[[RB]],
// CHECK: "gpu_tile.wgmma_wait"
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[Q]]) {by = "warpgroup"}
// CHECK: first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32
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
