// Rows gathered by number go into the slots that tensor copies fill: announced bytes, and an arrival
// of each thread's copies. The numbers, and nothing else of them, move to the load role.
// RUN: tilec opt %s --passes select-mma,infer-layouts,remove-layout-conversions,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 4 | filecheck %s
// RUN: tilec opt %s --passes select-mma,infer-layouts,remove-layout-conversions,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps --target sm_100a --num-warps 4 | filecheck %s --check-prefix=MULTIPLY

!m = memref<?x?xbf16, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!a = tensor<128x64xbf16>
!i = tensor<128x64xi32>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// 128 threads that copy and one that announces; a release of the warpgroup that multiplies.
// CHECK-LABEL: @rows
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 129 : i32, options = {}, releases = 1 : i32
// CHECK-NOT: make_ring
// CHECK: "gpu_tile.role"
// CHECK: %[[NUMBERS:.*]] = "tile.load"(%arg1
// CHECK: %[[ROWS:.*]] = "tile.broadcast"(%[[NUMBERS]])
// CHECK: scf.for
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_acquire"(%[[RING]]
// CHECK: "gpu_tile.ring_announce"(%[[RING]], %[[SLOT]]) {bytes = 8192 : i32}
// CHECK: "gpu_tile.tma_load"({{.*}}, %[[RING]], %[[SLOT]]
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS]], %{{.*}}) {bytes = 16 : i32, cache = "cg"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[RING]], %[[SLOT]]) {by = "copies"}
// CHECK: first_warp = 4 : i32, name = "load"
// CHECK-SAME: warps = 4 : i32
// CHECK: "gpu_tile.role"
// CHECK-NOT: tile.gather
// CHECK-NOT: tile.load
// CHECK: "gpu_tile.ring_wait"(%[[RING]]
// CHECK-NOT: ring_wait
// CHECK: gpu_tile.wgmma"
// CHECK: "gpu_tile.ring_release"(%[[RING]], %{{.*}}) {by = "warpgroup"}

// Beside a multiply role two warps load, so that both are one warpgroup.
// MULTIPLY-LABEL: @rows
// MULTIPLY-SAME: tile.total_warps = 7 : i32
// MULTIPLY: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 65 : i32, options = {}, releases = 1 : i32
// MULTIPLY: "gpu_tile.role"
// MULTIPLY: %[[SLOT:.*]] = "gpu_tile.ring_acquire"(%[[RING]]
// MULTIPLY: "gpu_tile.cp_async_gather"
// MULTIPLY-NEXT: "gpu_tile.ring_publish"(%[[RING]], %[[SLOT]]) {by = "copies"}
// MULTIPLY: first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 2 : i32
// MULTIPLY: "gpu_tile.role"
// MULTIPLY-NOT: tile.broadcast
// MULTIPLY: "gpu_tile.ring_wait"(%[[RING]]
// MULTIPLY: gpu_tile.tcgen05_mma
// MULTIPLY-NEXT: "gpu_tile.ring_release"(%[[RING]], %{{.*}}) {by = "products"}
// MULTIPLY: first_warp = 6 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %numbers: !n,
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %none = arith.constant dense<0.0> : !a
  %ok = arith.constant dense<true> : tensor<128x64xi1>
  %size = memref.dim %a, %c1 : !m
  %of = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<128xi32>
  %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<128xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %first = tensor.splat %k32 : !i
    %column = arith.addi %first, %along : !i
    %ta = "tile.gather"(%a, %ok, %none, %row, %column) {options = {}} : (!m, tensor<128x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  } {tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Threads that compute a tile in the loop stay in it: nobody else multiplies.
// MULTIPLY-LABEL: @carries
// MULTIPLY: "gpu_tile.role"
// MULTIPLY-NOT: name = "multiply"
func.func @carries(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %numbers: !n, %o: !n,
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %none = arith.constant dense<0.0> : !a
  %ok = arith.constant dense<true> : tensor<128x64xi1>
  %size = memref.dim %a, %c1 : !m
  %of = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!n, index) -> tensor<128xi32>
  %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<128xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc, %last = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero, %highest = %of) -> (!c, tensor<128xi32>) {
    %k32 = arith.index_cast %k : index to i32
    %first = tensor.splat %k32 : !i
    %column = arith.addi %first, %along : !i
    %ta = "tile.gather"(%a, %ok, %none, %row, %column) {options = {}} : (!m, tensor<128x64xi1>, !a, !i, !i) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    %high = arith.maxsi %highest, %of : tensor<128xi32>
    scf.yield %next, %high : !c, tensor<128xi32>
  }
  "tile.store"(%last, %o, %c0) {dims = array<i32: 0>, options = {}} : (tensor<128xi32>, !n, index) -> ()
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
