// Keys that are values: both products read one tile in tensor memory's loop, the second of them turned.
// Its slot is released by the second: the wait for that is an iteration later.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!q = tensor<64x64xbf16>
!s = tensor<64x64xf32>
// CHECK-LABEL: @keys_are_values
// CHECK: name = "load"
// CHECK-NOT: ring_release
// CHECK: "gpu_tile.ring_wait"(%[[RING:[^,]*]], %
// CHECK-NOT: ring_release
// CHECK: scf.for
// CHECK-NOT: ring_release
// It was waited for where the first product was issued, an iteration ahead.
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_slot"(%[[RING]], %
// CHECK-NEXT: %[[TILE:.*]] = "gpu_tile.slot"(%{{.*}}, %[[SLOT]])
// CHECK: math.exp2
// CHECK: "gpu_tile.ring_wait"(%[[DONE:[^,]*]], %[[N:[^)]*]]) {previous = true}
// CHECK: "gpu_tile.buffer_store"
// CHECK: %[[TURNED:.*]] = "gpu_tile.transpose_view"(%[[TILE]])
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %[[TURNED]], %
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[SLOT]]) {by = "products"}
// CHECK-NEXT: %[[OWN:.*]] = "gpu_tile.ring_slot"(%[[DONE]], %[[N]])
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[DONE]], %[[OWN]]) {by = "products"}
// CHECK-NOT: ring_release
// CHECK: name = "compute"
func.func @keys_are_values(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %o: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bn = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !s
  %size = memref.dim %k, %c0 : !m
  %tq = "tile.load"(%q, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
  %acc = scf.for %n = %c0 to %size step %bn iter_args(%sum = %zero) -> (!s) {
    %tk = "tile.load"(%k, %n, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %kt = "tile.transpose"(%tk) {permutation = array<i32: 1, 0>} : (!q) -> !q
    %s = "tile.dot"(%tq, %kt, %zero) {options = {}} : (!q, !q, !s) -> !s
    %e = math.exp2 %s : !s
    %p = arith.truncf %e : !s to !q
    %next = "tile.dot"(%p, %tk, %sum) {options = {}} : (!q, !q, !s) -> !s
    scf.yield %next : !s
  }
  "tile.store"(%acc, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
