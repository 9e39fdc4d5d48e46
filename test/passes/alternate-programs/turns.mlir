// Two sets of warps take programs in turn; who passes by one counts what it fills.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,insert-async-copies,split-conversions,specialize-warps,overlap-mma,alternate-programs --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// The demand is met, and gone.
// CHECK-NOT: tile.consumers
// CHECK-SAME: tile.total_warps = 12 : i32
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 1 : i32, slots = 11 : i32}
// One turn a program, released by the four warps that have it.
// CHECK-NEXT: %[[ORDER:.*]] = "gpu_tile.make_ring"() {fills = 0 : i32, options = {}, releases = 4 : i32, slots = 1 : i32}
// CHECK-NOT: "gpu_tile.ring_acquire"(%[[ORDER]]
// CHECK: first_warp = 8 : i32, name = "load", registers = 40 : i32, warps = 4 : i32
// CHECK: "gpu_tile.role"
// CHECK: %[[TEAM:.*]] = arith.constant 0 : i32
// CHECK: scf.for %{{.*}} iter_args(%[[N:.*]] = %{{.*}}, %[[NUMBER:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[TURN:.*]] = arith.andi %[[NUMBER]]
// CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[TURN]], %[[TEAM]]
// CHECK: %[[NEXT:.*]] = scf.if %[[OWN]] -> (i32)
// CHECK: %[[P:.*]] = "gpu_tile.ring_acquire"(%[[ORDER]], %[[NUMBER]])
// CHECK-NEXT: %[[LOOP:.*]]:2 = scf.for
// CHECK: "gpu_tile.ring_wait"(%[[RING]]
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.ring_release"(%[[RING]]
// The other set may go on before the last product is done.
// CHECK: "gpu_tile.ring_release"(%[[ORDER]], %[[P]]) {by = "warp"}
// CHECK-NEXT: "gpu_tile.wgmma_wait"(%[[LOOP]]#0) {pending = 0 : i32}
// CHECK: "tile.store"
// CHECK: scf.yield %[[LOOP]]#1 : i32
// CHECK: } else {
// CHECK-NOT: scf.for
// CHECK: %[[SPAN:.*]] = arith.subi
// CHECK: arith.divui
// CHECK: %[[TRIPS:.*]] = arith.select
// CHECK: %[[SKIPPED:.*]] = arith.addi %[[N]]
// CHECK: scf.yield %[[SKIPPED]] : i32
// CHECK: scf.yield %[[NEXT]], %{{.*}} : i32, i32
// CHECK: first_warp = 0 : i32, name = "compute", registers = 232 : i32, warps = 4 : i32
// CHECK: "gpu_tile.role"
// CHECK: arith.constant 1 : i32
// CHECK: "gpu_tile.ring_acquire"(%[[ORDER]]
// CHECK: first_warp = 4 : i32, name = "compute 1", registers = 232 : i32, warps = 4 : i32
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.consumers = "pingpong"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %p, %bk : index
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
