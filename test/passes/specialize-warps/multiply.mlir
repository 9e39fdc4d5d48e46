// Products in tensor memory have a warp of their own, which gives slots back by its commits.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// Four warps compute, one loads, one multiplies: no registers to move.
// CHECK-LABEL: @matmul
// CHECK-SAME: tile.total_warps = 6 : i32
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = [[N:[0-9]+]] : i32}
// One commit gives a slot back.
// CHECK: %[[EMPTY:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = [[N]] : i32}
// Sums have two slots: the next program's products run under this one's end.
// CHECK: %[[READY:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 2 : i32}
// CHECK: %[[TAKEN:.*]] = "gpu_tile.barrier_init"() {count = 4 : i32, options = {}, slots = 2 : i32}
// CHECK: %[[T:.*]] = "gpu_tile.alloc"() {{.*}}tensor<2x128x64xf32>, #gpu_tile.tmem
// All barriers are made in front of the fence, the multiply role's too.
// CHECK-NOT: barrier_init"()
// CHECK: "gpu_tile.fence"() {kind = "barrier_init"}
// CHECK-NOT: barrier_init"()
// CHECK: "gpu_tile.sync"() {{.*}}warps = 6 : i32
// CHECK-NOT: barrier_init"()

// CHECK: "gpu_tile.role"
// CHECK-NOT: tcgen05
// CHECK: gpu_tile.tma_load
// CHECK: first_warp = 4 : i32, name = "load", registers = 0 : i32, warps = 1 : i32

// CHECK: "gpu_tile.role"
// CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = 2 : i32}
// CHECK: %[[FREE:.*]] = arith.xori %[[P]]#1, %true
// CHECK: "gpu_tile.barrier_wait"(%[[TAKEN]], %[[P]]#0, %[[FREE]])
// CHECK: %[[SUM:.*]] = "gpu_tile.slot"(%[[T]], %[[P]]#0)
// CHECK: scf.for
// CHECK: %[[Q:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = [[N]] : i32}
// CHECK: "gpu_tile.barrier_wait"(%[[FULL]], %[[Q]]#0, %[[Q]]#1)
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[SUM]], %{{.*}})
// CHECK-NEXT: "gpu_tile.tcgen05_commit"(%[[EMPTY]], %[[Q]]#0)
// CHECK: scf.yield
// CHECK: "gpu_tile.tcgen05_commit"(%[[READY]], %[[P]]#0)
// CHECK: first_warp = 5 : i32, name = "multiply", registers = 0 : i32, warps = 1 : i32

// CHECK: "gpu_tile.role"
// CHECK-NOT: tcgen05_mma
// CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = 2 : i32}
// CHECK: "gpu_tile.barrier_wait"(%[[READY]], %[[P]]#0, %[[P]]#1)
// CHECK: gpu_tile.buffer_load
// CHECK: "gpu_tile.barrier_arrive"(%[[TAKEN]], %[[P]]#0) {per = "warp"}
// CHECK: tile.store
// CHECK: first_warp = 0 : i32, name = "compute", registers = 0 : i32, warps = 4 : i32
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
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
