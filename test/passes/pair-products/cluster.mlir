// Two pairs beside each other read the same tiles: each CTA loads half for both pairs, and has its
// slot back when the products of both are done.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,pair-products --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[PLACE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK: %[[EVEN:.*]] = arith.cmpi eq, %[[PLACE]], %{{.*}}
// CHECK: %[[OWN:.*]] = "gpu_tile.cluster_mask"() {axes = array<i32>}
// CHECK: %[[FIRST:.*]] = arith.shrui %[[OWN]], %[[PLACE]]
// CHECK: %[[BOTH:.*]] = arith.muli %[[FIRST]], %c3
// CHECK: %[[ROW:.*]] = "gpu_tile.cluster_mask"() {axes = array<i32: 1>}
// CHECK: %[[COLUMN:.*]] = "gpu_tile.cluster_position"() {axis = 1 : i32}
// CHECK: %[[LOADERS:.*]] = arith.muli %[[ROW]], %c3
// CHECK: %[[SOME:.*]] = arith.ori %[[LOADERS]], %[[BOTH]]
// CHECK: %[[FILL:.*]] = arith.ori %{{.*}}, %[[SOME]]
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, {{.*}}releases = 2 : i32,
// CHECK: %[[SUMS:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, {{.*}}releases = 8 : i32,
// The bytes of both CTAs of a pair, whoever loads them.
// CHECK: "gpu_tile.ring_announce"(%[[RING]], %{{.*}}) {bytes = 40960 : i32}
// CHECK: "gpu_tile.tma_pair_multicast"(%{{[^,]*}}, %{{[^,]*}}, %[[RING]], %{{[^,]*}}, %[[ROW]],
// CHECK: "gpu_tile.tma_pair_multicast"(%{{[^,]*}}, %{{[^,]*}}, %[[RING]],
// CHECK: name = "load"
// CHECK: "gpu_tile.tcgen05_mma"({{.*}}) {instruction = "tcgen05.pair.m256n64k16.f32.bf16.bf16"}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %{{.*}}, %[[FILL]]) {by = "products"}
// CHECK: "gpu_tile.ring_publish"(%[[SUMS]], %{{.*}}, %[[BOTH]]) {by = "products"}
// CHECK: name = "multiply"
// CHECK: "gpu_tile.ring_release"(%[[SUMS]], %{{.*}}, %[[FIRST]]) {by = "warp"}
// CHECK: name = "compute"
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.cluster = array<i32: 2, 2>} {
  %px = "tile.program_id"() {axis = 0 : i32} : () -> index
  %bm = arith.constant 128 : index
  %m = arith.muli %px, %bm : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
