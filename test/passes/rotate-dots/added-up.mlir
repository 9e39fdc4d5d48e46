// What a loop scales and adds up of a product is added up under the next product.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: name = "load"
// CHECK: scf.if
// CHECK: %[[START:.*]] = "gpu_tile.wgmma"
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK: %[[TWICE:.*]] = arith.addi %[[STEP:.*]], %[[STEP]]
// CHECK: %[[STOP:.*]] = arith.subi %[[UPPER:.*]], %[[TWICE]]
// CHECK: %[[LOOP:.*]]:4 = scf.for %[[K:.*]] = %[[LOWER:.*]] to %[[STOP]] step %[[TWICE]] iter_args(%{{.*}} = %[[LOWER]], %[[ACC:.*]] = %{{.*}}, %[[N:.*]] = %{{.*}}, %[[FLYING:.*]] = %[[START]])
// The next product is issued, then this one finished, whose slot is free then.
// CHECK: %[[OTHER:.*]] = "gpu_tile.wgmma"
// CHECK: %[[DONE:.*]] = "gpu_tile.wgmma_wait"(%[[FLYING]]) {pending = 1 : i32}
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_slot"(%[[RING:.*]], %[[N]])
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[SLOT]]) {by = "warpgroup"}
// CHECK: arith.mulf %[[DONE]]
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC]]
// CHECK: %[[BEHIND:.*]] = "gpu_tile.wgmma"
// CHECK: %[[DONE2:.*]] = "gpu_tile.wgmma_wait"(%[[OTHER]]) {pending = 1 : i32}
// CHECK: arith.mulf %[[DONE2]]
// CHECK: arith.addf %[[SUM]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[BEHIND]]
// One or two are left.
// CHECK: scf.if
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#3) {pending = 1 : i32}
// CHECK: "gpu_tile.wgmma_wait"(%{{.*}}) {pending = 0 : i32}
// CHECK: } else {
// CHECK-NOT: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%[[LOOP]]#3) {pending = 0 : i32}
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %half = arith.constant dense<0.5> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %product = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !a, !c) -> !c
    %scaled = arith.mulf %product, %half : !c
    %next = arith.addf %sum, %scaled : !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Not around a loop, which takes longer than the product and would be there five times.
// CHECK-LABEL: @around_a_loop
// CHECK: name = "load"
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%{{.*}}) {pending = 0 : i32}
// CHECK: scf.for
// CHECK-COUNT-1: "gpu_tile.wgmma"(
// CHECK: name = "compute"
func.func @around_a_loop(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                         %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                         %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %half = arith.constant dense<0.5> : !c
  %rows = memref.dim %a, %c0 : !m
  %size = memref.dim %a, %c1 : !m
  scf.for %p = %c0 to %rows step %bk {
    %ta = "tile.load"(%a, %p, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %product = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !a, !c) -> !c
    %first = arith.mulf %product, %half : !c
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %first) -> (!c) {
      %tx = "tile.load"(%a, %p, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %ty = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%tx, %ty, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    "tile.store"(%acc, %c, %p, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  }
  return
}
