// Two slots of 256 columns are all there are: the next first product is issued when all have loaded
// this one, in front of the second.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!q = tensor<64x64xbf16>
!k = tensor<64x256xbf16>
!w = tensor<64x256xf32>
!p = tensor<64x256xbf16>
!v = tensor<256x64xbf16>
!s = tensor<64x64xf32>

// CHECK-LABEL: @two_products
// CHECK: name = "load"
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = "gpu_tile.ring_slot"(%[[SUMS:.*]], %
// CHECK: %[[K:.*]] = "gpu_tile.ring_wait"(%[[KEYS:.*]], %
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[S:.*]], %false)
// CHECK-NEXT: "gpu_tile.ring_release"(%[[KEYS]], %[[K]]) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[SUMS]], %[[FIRST]]) {by = "products"}
// CHECK: scf.for
// CHECK-NOT: tcgen05_mma
// CHECK: "gpu_tile.ring_wait"(%[[SUMS]], %
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[S]])
// CHECK: math.exp2
// CHECK: "gpu_tile.buffer_store"
// CHECK: scf.if
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[S]], %false)
// CHECK-NEXT: "gpu_tile.ring_release"(%[[KEYS]], %{{.*}}) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[SUMS]], %{{.*}}) {by = "products"}
// CHECK-NEXT: }
// CHECK-NEXT: %[[V:.*]] = "gpu_tile.ring_wait"(%[[VALUES:.*]], %{{.*}}) {previous = false}
// CHECK-NEXT: "gpu_tile.slot"(%{{.*}}, %[[V]])
// CHECK-NEXT: "gpu_tile.tcgen05_mma"
func.func @two_products(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %v: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %o: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bn = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !w
  %start = arith.constant dense<0.0> : !s
  %size = memref.dim %k, %c0 : !m
  %tq = "tile.load"(%q, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
  %acc = scf.for %n = %c0 to %size step %bn iter_args(%sum = %start) -> (!s) {
    %tk = "tile.load"(%k, %n, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !k
    %s = "tile.dot"(%tq, %tk, %zero) {options = {}} : (!q, !k, !w) -> !w
    %e = math.exp2 %s : !w
    %p = arith.truncf %e : !w to !p
    %tv = "tile.load"(%v, %n, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !v
    %next = "tile.dot"(%p, %tv, %sum) {options = {}} : (!p, !v, !s) -> !s
    scf.yield %next : !s
  }
  "tile.store"(%acc, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
