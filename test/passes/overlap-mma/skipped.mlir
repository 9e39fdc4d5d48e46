// Products that some iterations skip: the group before stays in flight where they do.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!f = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @skips
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 12 : i32}
// CHECK: name = "load"
// CHECK: %[[START:.*]] = "gpu_tile.wgmma_fence"
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[START]], %[[N:.*]] = %[[FIRST:.*]]) -> (!gpu_tile.pending<{{.*}}, i32)
// CHECK: %[[GOT:.*]]:2 = scf.if %{{.*}} -> (!gpu_tile.pending<{{.*}}, i32)
// CHECK: %[[NEXT:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[ACC]])
// CHECK: %[[SAFE:.*]] = "gpu_tile.wgmma_wait"(%[[NEXT]]) {pending = 1 : i32}
// There was a turn before this one if the count has grown in this loop.
// CHECK: %[[LATER:.*]] = arith.cmpi slt, %[[FIRST]], %[[N]] : i32
// CHECK: scf.if %[[LATER]] {
// CHECK: %[[BEFORE:.*]] = arith.subi %[[N]], %{{.*}} : i32
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[RING]], %[[BEFORE]])
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[P]]) {by = "warpgroup"}
// CHECK: scf.yield %[[SAFE]], %{{.*}}
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[ACC]], %[[N]]
// CHECK: scf.yield %[[GOT]]#0, %[[GOT]]#1
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#0) {pending = 0 : i32}
// CHECK: %[[RAN:.*]] = arith.cmpi slt, %[[FIRST]], %[[LOOP]]#1 : i32
// CHECK: scf.if %[[RAN]] {
// CHECK: "gpu_tile.ring_release"
func.func @skips(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %one = "tile.load"(%keep, %k) {dims = array<i32>, padding = 0 : i32, options = {}} : (!f, index) -> tensor<i32>
    %flag = tensor.extract %one[] : tensor<i32>
    %kept = arith.cmpi sgt, %flag, %n0 : i32
    %got = scf.if %kept -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    } else {
      scf.yield %sum : !c
    }
    scf.yield %got : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
