// Of two accumulators the products of an iteration are all issued before those of the one before are waited for.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @gated
// CHECK: name = "load"
// CHECK: %[[G:.*]] = "gpu_tile.wgmma_fence"
// CHECK: %[[U:.*]] = "gpu_tile.wgmma_fence"
// CHECK: %[[LOOP:.*]]:3 = scf.for %{{.*}} iter_args(%[[GATE:.*]] = %[[G]], %[[UP:.*]] = %[[U]], %{{.*}}) -> (!gpu_tile.pending
// CHECK: "gpu_tile.ring_wait"
// CHECK: %[[FIRST:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[GATE]])
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK-NOT: gpu_tile.ring_release
// CHECK: %[[SECOND:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[UP]])
// CHECK: %[[SAFE:.*]] = "gpu_tile.wgmma_wait"(%[[SECOND]]) {pending = 2 : i32}
// CHECK: scf.if
// CHECK: "gpu_tile.ring_release"
// CHECK: scf.yield %[[FIRST]], %[[SAFE]]
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#0) {pending = 0 : i32}
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#1) {pending = 0 : i32}
// CHECK: "gpu_tile.ring_release"
func.func @gated(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                 %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                 %d: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                 %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %g, %u = scf.for %k = %c0 to %size step %bk iter_args(%gate = %zero, %up = %zero) -> (!c, !c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %td = "tile.load"(%d, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %x = "tile.dot"(%ta, %tb, %gate) {options = {}} : (!a, !a, !c) -> !c
    %y = "tile.dot"(%ta, %td, %up) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %x, %y : !c, !c
  }
  %both = arith.mulf %g, %u : !c
  "tile.store"(%both, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
