// An lhs in registers, in two parts: behind each group's issue a wait for the one before, whose
// registers the next part is computed in. A slot that warps computed from is given back once the
// product that needs it is issued, one that a product reads when the next iteration's first waits.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[A:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 4 : i32
// CHECK-NEXT: %[[B:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32
// CHECK: name = "load"
// CHECK: scf.for %{{.*}} = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[N:.*]] = %{{.*}})
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_wait"(%[[A]], %[[N]])
// CHECK: "gpu_tile.ring_wait"(%[[B]], %[[N]])
// CHECK: "gpu_tile.buffer_load"
// CHECK: %[[Q:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[ACC]])
// CHECK-NEXT: %[[W:.*]] = "gpu_tile.wgmma_wait"(%[[Q]]) {pending = 1 : i32}
// CHECK: scf.if
// CHECK: %[[BEFORE:.*]] = arith.subi %[[N]]
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[B]], %[[BEFORE]])
// CHECK: "gpu_tile.ring_release"(%[[B]], %[[P]]) {by = "warpgroup"}
// CHECK: "gpu_tile.buffer_load"
// CHECK: %[[R:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[W]])
// CHECK-NEXT: "gpu_tile.ring_release"(%[[A]], %[[SLOT]]) {by = "warp"}
// CHECK-NEXT: %[[S:.*]] = "gpu_tile.wgmma_wait"(%[[R]]) {pending = 1 : i32}
// CHECK: scf.yield %[[S]]
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
    %minus = arith.negf %ta : !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%minus, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
