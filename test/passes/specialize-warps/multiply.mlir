// Products in tensor memory have a warp of their own, whose end releases the slots.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// Four warps compute, one loads, one multiplies: no registers to move.
// CHECK-LABEL: @matmul
// CHECK-SAME: tile.total_warps = 6 : i32
// One end of products releases a slot.
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = [[N:[0-9]+]] : i32}
// Sums have two slots: the next program's products run under this one's end.
// CHECK-NEXT: %[[SUMS:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 4 : i32, slots = 2 : i32}
// CHECK: %[[T:.*]] = "gpu_tile.alloc"() {{.*}}tensor<2x128x64xf32>, #gpu_tile.tmem
// CHECK-NOT: make_ring

// CHECK: "gpu_tile.role"
// CHECK-NOT: tcgen05
// CHECK: gpu_tile.tma_load
// CHECK: first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32

// CHECK: "gpu_tile.role"
// CHECK: %[[P:.*]] = "gpu_tile.ring_acquire"(%[[SUMS]], %{{.*}})
// CHECK: %[[SUM:.*]] = "gpu_tile.slot"(%[[T]], %[[P]])
// CHECK: scf.for
// CHECK: %[[Q:.*]] = "gpu_tile.ring_wait"(%[[RING]], %{{.*}}) {previous = false}
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[SUM]], %{{.*}})
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[Q]]) {by = "products"}
// CHECK: scf.yield
// CHECK: "gpu_tile.ring_publish"(%[[SUMS]], %[[P]]) {by = "products"}
// CHECK: first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32

// CHECK: "gpu_tile.role"
// CHECK-NOT: tcgen05_mma
// CHECK: %[[R:.*]] = "gpu_tile.ring_wait"(%[[SUMS]], %{{.*}}) {previous = false}
// CHECK: %[[THERE:.*]] = "gpu_tile.slot"(%[[T]], %[[R]])
// CHECK: "gpu_tile.buffer_load"(%[[THERE]])
// CHECK: "gpu_tile.ring_release"(%[[SUMS]], %[[R]]) {by = "warp"}
// CHECK: tile.store
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
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
