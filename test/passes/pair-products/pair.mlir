// Two CTAs below each other multiply together: own rows of lhs, half the columns of rhs.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,pair-products --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[PLACE:.*]] = "gpu_tile.cluster_position"() {axis = 0 : i32}
// CHECK: %[[EVEN:.*]] = arith.cmpi eq, %[[PLACE]], %{{.*}}
// CHECK: %[[BOTH:.*]] = arith.constant 3 : i32
// CHECK: %[[FIRST:.*]] = arith.constant 1 : i32
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = [[N:[0-9]+]] : i32}
// The warps of both CTAs take a sum.
// CHECK: %[[SUMS:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 8 : i32
// CHECK: "gpu_tile.alloc"() {{.*}}tensor<[[N]]x128x64xbf16>
// Half of the columns, in the swizzle of their width.
// CHECK: "gpu_tile.alloc"() {{.*}}tensor<[[N]]x64x32xbf16>, #gpu_tile.shared<"S<2,4,3> o (64,32):(32,1)">

// CHECK: "gpu_tile.role"
// CHECK: %[[FREE:.*]] = "gpu_tile.ring_acquire"(%[[RING]]
// CHECK: scf.if %[[EVEN]] {
// CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[FREE]]) {bytes = 40960 : i32}
// CHECK: "gpu_tile.tma_pair_load"(%{{[^,]*}}, %{{[^,]*}}, %[[RING]], %[[FREE]],
// CHECK: %[[STEP:.*]] = arith.muli %[[PLACE]], %c32_i32
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[STEP]]
// CHECK: "gpu_tile.tma_pair_load"(%{{[^,]*}}, %{{[^,]*}}, %[[RING]], %[[FREE]], {{.*}}, %[[AT]])
// CHECK: name = "load"

// CHECK: "gpu_tile.role"
// CHECK-NEXT: scf.if %[[EVEN]] {
// CHECK: %[[SUM:.*]] = "gpu_tile.ring_acquire"(%[[SUMS]]
// CHECK: %[[FULL:.*]] = "gpu_tile.ring_wait"(%[[RING]]
// CHECK: "gpu_tile.tcgen05_mma"({{.*}}) {instruction = "tcgen05.pair.m256n64k16.f32.bf16.bf16"}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[FULL]], %[[BOTH]]) {by = "products"}
// CHECK: "gpu_tile.ring_publish"(%[[SUMS]], %[[SUM]], %[[BOTH]]) {by = "products"}
// CHECK: name = "multiply"

// CHECK: "gpu_tile.role"
// CHECK: %[[READY:.*]] = "gpu_tile.ring_wait"(%[[SUMS]]
// CHECK: "gpu_tile.ring_release"(%[[SUMS]], %[[READY]], %[[FIRST]]) {by = "warp"}
// CHECK: name = "compute"
// CHECK: gpu_tile.cluster_sync
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.cluster = array<i32: 2, 1>} {
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
