// Both products read the values, which share a ring with the keys: a slot is given back behind the
// second product, which reads it last.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!q = tensor<64x64xbf16>
!s = tensor<64x64xf32>

// CHECK-LABEL: @two_products
// CHECK: name = "load"
// CHECK: scf.if
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 0 : i32}
// CHECK-NOT: ring_release
// CHECK: scf.for
// CHECK: "gpu_tile.ring_wait"(%[[RING:.*]], %[[N:.*]]) {previous = false}
// CHECK: %[[COUNT:.*]] = arith.subi %[[N]]
// CHECK: %[[BEFORE:.*]] = "gpu_tile.ring_wait"(%[[RING]], %[[COUNT]])
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 1 : i32}
// CHECK-NOT: ring_release
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[BEFORE]]) {by = "warpgroup"}
// CHECK-NOT: ring_release
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = "gpu_tile.ring_wait"(%[[RING]],
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[RING]], %[[LAST]]) {by = "warpgroup"}
// CHECK: else
func.func @two_products(%k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %v: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %o: memref<?x?xf32, strided<[?, 1]>>, %scale: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bn = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !s
  %factor = tensor.splat %scale : !s
  %size = memref.dim %k, %c0 : !m
  %acc = scf.for %n = %c0 to %size step %bn iter_args(%sum = %zero) -> (!s) {
    %tk = "tile.load"(%k, %n, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %tv = "tile.load"(%v, %n, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %s = "tile.dot"(%tv, %tk, %zero) {options = {}} : (!q, !q, !s) -> !s
    %e = math.exp2 %s : !s
    %p = arith.truncf %e : !s to !q
    %scaled = arith.mulf %sum, %factor : !s
    %next = "tile.dot"(%p, %tv, %scaled) {options = {}} : (!q, !q, !s) -> !s
    scf.yield %next : !s
  }
  "tile.store"(%acc, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
