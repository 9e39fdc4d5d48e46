// The second product of an iteration runs under what the next one does between its products.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!q = tensor<64x64xbf16>
!s = tensor<64x64xf32>

// CHECK-LABEL: @two_products
// CHECK: name = "load"
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER:.*]], %[[UPPER:.*]] : index
// CHECK: scf.if %[[ANY]]
// The first iteration up to its second product.
// CHECK: %[[K0:.*]] = "gpu_tile.ring_wait"(%[[K:.*]], %{{.*}}) {previous = false}
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[K]], %[[K0]]) {by = "warpgroup"}
// CHECK: math.exp2
// CHECK: %[[SECOND:.*]] = arith.addi %[[LOWER]], %{{.*}} : index
// CHECK: scf.for %{{.*}} = %[[SECOND]] to %[[UPPER]]
// This iteration's first product, the second of the one before.
// CHECK: %[[K1:.*]] = "gpu_tile.ring_wait"(%[[K]], %[[COUNT:.*]]) {previous = false}
// CHECK: %[[S:.*]] = "gpu_tile.wgmma"
// CHECK: %[[BEFORE:.*]] = arith.subi %[[COUNT]]
// CHECK: %[[V0:.*]] = "gpu_tile.ring_wait"(%[[V:.*]], %[[BEFORE]]) {previous = false}
// CHECK: %[[O:.*]] = "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 1 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[K]], %[[K1]])
// CHECK: math.exp2
// The author scales in front of this; it must not hold the rest up.
// CHECK-NOT: arith.mulf
// CHECK: "gpu_tile.wgmma_meanwhile"()
// CHECK-NEXT: %[[ACC:.*]] = "gpu_tile.wgmma_wait"(%[[O]]) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[V]], %[[V0]]) {by = "warpgroup"}
// CHECK: arith.mulf %[[ACC]]
// CHECK: scf.yield
// The last one's second product.
// CHECK: %[[V1:.*]] = "gpu_tile.ring_wait"(%[[V]], %{{.*}}) {previous = false}
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.wgmma_wait"({{.*}}) {pending = 0 : i32}
// CHECK-NEXT: "gpu_tile.ring_release"(%[[V]], %[[V1]])
// CHECK: scf.yield
// No iteration: the accumulator as it came in.
// CHECK: else
// CHECK-NEXT: scf.yield
func.func @two_products(%k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %v: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %o: memref<?x?xf32, strided<[?, 1]>>, %scale: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bn = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !s
  %one = arith.constant dense<1.0> : !q
  %factor = tensor.splat %scale : !s
  %size = memref.dim %k, %c0 : !m
  %acc = scf.for %n = %c0 to %size step %bn iter_args(%sum = %zero) -> (!s) {
    %tk = "tile.load"(%k, %n, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %s = "tile.dot"(%one, %tk, %zero) {options = {}} : (!q, !q, !s) -> !s
    %scaled = arith.mulf %sum, %factor : !s
    %e = math.exp2 %s : !s
    %p = arith.truncf %e : !s to !q
    %tv = "tile.load"(%v, %n, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %next = "tile.dot"(%p, %tv, %scaled) {options = {}} : (!q, !q, !s) -> !s
    scf.yield %next : !s
  }
  "tile.store"(%acc, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
