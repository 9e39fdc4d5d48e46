// Beside products that run by themselves the copies stand behind the issue of the first: no product
// waits for the issue of copies, nor does the fence in front of it.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,pipeline-loops --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!i = tensor<64x64xi32>
!c = tensor<64x64xf32>

// Where the loop carries the sum, behind the wait, too, which overlap-mma makes one for the product
// of the iteration before.
// CHECK-LABEL: @rows
// CHECK: scf.for
// CHECK: "gpu_tile.cp_async_wait"() {pending = 2 : i32}
// CHECK-NOT: gpu_tile.cp_async_gather
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"
// CHECK-COUNT-2: "gpu_tile.cp_async_gather"
// CHECK-NEXT: "gpu_tile.cp_async_commit"
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %numbers: !n, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %all = arith.constant dense<true> : tensor<64x64xi1>
  %none = arith.constant dense<0.0> : !a
  %size = memref.dim %a, %c1 : !m
  %number = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%number) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : !i
    %column = arith.addi %from, %along : !i
    %ta = "tile.gather"(%a, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.gather"(%b, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tt = "tile.transpose"(%tb) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %d = "tile.dot"(%ta, %tt, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK-LABEL: @summed
// CHECK: scf.for
// CHECK: "gpu_tile.cp_async_wait"
// CHECK-NOT: gpu_tile.cp_async_gather
// CHECK: "gpu_tile.wgmma"
// CHECK-NOT: gpu_tile.wgmma_wait
// CHECK-COUNT-2: "gpu_tile.cp_async_gather"
// CHECK-NEXT: "gpu_tile.cp_async_commit"
// CHECK-NEXT: "gpu_tile.wgmma_wait"
func.func @summed(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %numbers: !n, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %all = arith.constant dense<true> : tensor<64x64xi1>
  %none = arith.constant dense<0.0> : !a
  %size = memref.dim %a, %c1 : !m
  %number = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%number) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : !i
    %column = arith.addi %from, %along : !i
    %ta = "tile.gather"(%a, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.gather"(%b, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %tt = "tile.transpose"(%tb) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %p = "tile.dot"(%ta, %tt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %d = arith.addf %sum, %p : !c
    scf.yield %d : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Sums that leave no registers for a second CTA leave it no shared memory.
// CHECK-LABEL: @large
// CHECK: slots = 3 : i32
func.func @large(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %numbers: !n, %others: !n, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x512xf32>
  %all = arith.constant dense<true> : tensor<64x64xi1>
  %none = arith.constant dense<0.0> : !a
  %every = arith.constant dense<true> : tensor<512x64xi1>
  %nil = arith.constant dense<0.0> : tensor<512x64xbf16>
  %other = "tile.load"(%others, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<512xi32>
  %far = "tile.broadcast"(%other) {dims = array<i32: 0>} : (tensor<512xi32>) -> tensor<512x64xi32>
  %down = "tile.iota"() {axis = 1 : i32} : () -> tensor<512x64xi32>
  %size = memref.dim %a, %c1 : !m
  %number = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%number) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<64x512xf32>) {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : !i
    %column = arith.addi %from, %along : !i
    %ta = "tile.gather"(%a, %all, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %wide = tensor.splat %k32 : tensor<512x64xi32>
    %columns = arith.addi %wide, %down : tensor<512x64xi32>
    %tb = "tile.gather"(%b, %every, %nil, %far, %columns) {options = {}} : (!m, tensor<512x64xi1>, tensor<512x64xbf16>, tensor<512x64xi32>, tensor<512x64xi32>) -> tensor<512x64xbf16>
    %tt = "tile.transpose"(%tb) {permutation = array<i32: 1, 0>} : (tensor<512x64xbf16>) -> tensor<64x512xbf16>
    %d = "tile.dot"(%ta, %tt, %sum) {options = {}} : (!a, tensor<64x512xbf16>, tensor<64x512xf32>) -> tensor<64x512xf32>
    scf.yield %d : tensor<64x512xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x512xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
