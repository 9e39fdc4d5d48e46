// Where a tensor map can describe the array, the copy engine fills what warpgroups read: both tiles
// publish one ring, whose turns a counter counts.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 0 : i32, slots = 1 : i32}
// CHECK-DAG: %[[MA:.*]] = "gpu_tile.make_tensor_map"(%arg0) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
// CHECK-DAG: %[[MB:.*]] = "gpu_tile.make_tensor_map"(%arg1) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[N:.*]] = %{{.*}}) -> ({{.*}}, i32)
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[N]])
// CHECK: "gpu_tile.ring_announce"(%[[RING]], %[[P]]) {bytes = 16384 : i32}
// CHECK: "gpu_tile.tma_load"(%[[MA]], %{{.*}}, %[[RING]], %[[P]], %{{.*}}, %{{.*}}) {cache = "normal"}
// CHECK: "gpu_tile.tma_load"(%[[MB]], %{{.*}}, %[[RING]], %[[P]], %{{.*}}, %{{.*}}) {cache = "normal"}
// CHECK: "gpu_tile.ring_wait"(%[[RING]], %[[N]]) {previous = false}
// CHECK-NOT: tile.load
// CHECK: arith.addi %[[N]]
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
