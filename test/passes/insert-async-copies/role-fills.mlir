// Under a demand for roles: what no tensor map describes is filled into a ring that counts
// each thread's copies and each warp's stores. A load role may then run ahead.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// 128 threads that copy, 4 warps that store.
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 132 : i32, options = {}, releases = 0 : i32, slots = 1 : i32}
// CHECK: scf.for
// CHECK-NOT: "tile.load"(%arg0
// CHECK: %[[TILE:.*]] = "tile.load"(%arg1
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[N:[^)]*]])
// CHECK: "gpu_tile.cp_async"(%arg0, {{.*}}bytes = 8 : i32
// CHECK: "gpu_tile.buffer_store"(%[[TILE]]
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[RING]], %[[P]]) {by = "copies"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[RING]], %[[P]]) {by = "warp"}
// CHECK-NEXT: "gpu_tile.ring_wait"(%[[RING]], %[[N]]) {previous = false}
// CHECK-NOT: cp_async_commit
// CHECK: "gpu_tile.wgmma"
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %b: !m, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
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
  } {tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
