// The turn of a ring stands inside that of another: each is filled by its own copies, and has its
// own buffers.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!t = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @sum_of_products
// CHECK-COUNT-2: "gpu_tile.make_ring"() {fills = 129 : i32, options = {}, releases = 1 : i32, slots = 2 : i32}
// CHECK-NOT: "gpu_tile.make_ring"
// CHECK-COUNT-4: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<2x64x64xbf16>
// CHECK: "gpu_tile.role"
// CHECK: %[[P:.*]] = "gpu_tile.ring_acquire"(%[[OUTER:[0-9]+]],
// CHECK: "gpu_tile.tma_load"({{.*}}, %[[OUTER]], %[[P]],
// CHECK: %[[Q:.*]] = "gpu_tile.ring_acquire"(%[[INNER:[0-9]+]],
// CHECK: "gpu_tile.tma_load"({{.*}}, %[[INNER]], %[[Q]],
// CHECK: "gpu_tile.cp_async"(%arg3
// CHECK: "gpu_tile.ring_publish"(%[[INNER]], %[[Q]]) {by = "copies"}
// CHECK: "gpu_tile.cp_async"(%arg1
// CHECK: "gpu_tile.ring_publish"(%[[OUTER]], %[[P]]) {by = "copies"}
// CHECK: name = "load"
// CHECK-NOT: "gpu_tile.alloc"
// CHECK: "gpu_tile.ring_wait"(%[[INNER]]
// CHECK: "gpu_tile.ring_wait"(%[[OUTER]]
// CHECK: name = "compute"
func.func @sum_of_products(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                           %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                           %d: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                           %e: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                           %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %outer = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !t
    %inner = "tile.load"(%d, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !t
    %te = "tile.load"(%e, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !t
    %first = "tile.dot"(%inner, %te, %sum) {options = {}} : (!t, !t, !c) -> !c
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !t
    %next = "tile.dot"(%outer, %tb, %first) {options = {}} : (!t, !t, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 2 : i32, tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
