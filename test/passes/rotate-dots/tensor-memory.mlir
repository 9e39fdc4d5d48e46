// In tensor memory the next iteration's first product is issued into another slot before anything
// else, and the second is awaited in the next iteration. The sum stays there between iterations.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,keep-accumulators,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!q = tensor<64x64xbf16>
!s = tensor<64x64xf32>

// CHECK-LABEL: @two_products
// CHECK: name = "load"
// CHECK: %[[S:.*]] = "gpu_tile.alloc"(){{.*}}tensor<2x64x64xf32>, #gpu_tile.tmem
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER:.*]], %[[UPPER:.*]] : index
// CHECK: scf.if %[[ANY]]
// CHECK: %[[S0:.*]] = "gpu_tile.ring_slot"(%[[SUMS:.*]], %
// CHECK: %[[AT:.*]] = "gpu_tile.ring_wait"(%[[K:.*]], %{{.*}}) {previous = false}
// CHECK: "gpu_tile.tcgen05_mma"
// The product releases the slot of the keys.
// CHECK-NEXT: "gpu_tile.ring_release"(%[[K]], %[[AT]]) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[SUMS]], %[[S0]]) {by = "products"}
// CHECK: %[[P:.*]] = "gpu_tile.alloc"(){{.*}}tensor<64x64xbf16>, #gpu_tile.tmem
// CHECK: %[[O:.*]] = "gpu_tile.alloc"(){{.*}}tensor<64x64xf32>, #gpu_tile.tmem
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[O]])
// CHECK: scf.for %[[N:.*]] = %[[LOWER]] to %[[UPPER]] step %[[STEP:[^ ]*]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[N]], %[[STEP]] : index
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[UPPER]] : index
// CHECK: scf.if %[[MORE]]
// CHECK: %[[S1:.*]] = "gpu_tile.ring_slot"(%[[SUMS]], %
// CHECK-NEXT: %[[OTHER:.*]] = "gpu_tile.slot"(%[[S]], %[[S1]])
// CHECK: %[[K1:.*]] = "gpu_tile.ring_wait"(%[[K]], %{{.*}}) {previous = false}
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[OTHER]], %false)
// CHECK-NEXT: "gpu_tile.ring_release"(%[[K]], %[[K1]]) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[SUMS]], %[[S1]]) {by = "products"}
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_slot"(%[[SUMS]], %[[COUNT:[^)]*]])
// CHECK: %[[THIS:.*]] = "gpu_tile.slot"(%[[S]], %[[SLOT]])
// CHECK: "gpu_tile.ring_wait"(%[[SUMS]], %[[COUNT]]) {previous = false}
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[THIS]])
// CHECK: math.exp2
// The product of the iteration before.
// CHECK: "gpu_tile.ring_wait"(%[[DONE:.*]], %[[OWN:.*]]) {previous = true}
// CHECK-NEXT: "gpu_tile.buffer_store"(%{{.*}}, %[[P]])
// CHECK-NEXT: %[[ACC:.*]] = "gpu_tile.buffer_load"(%[[O]])
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[ACC]]
// CHECK-NEXT: "gpu_tile.buffer_store"(%[[SCALED]], %[[O]])
// CHECK: %[[VAT:.*]] = "gpu_tile.ring_wait"(%[[V:.*]], %{{.*}}) {previous = false}
// CHECK-NEXT: "gpu_tile.slot"(%{{.*}}, %[[VAT]])
// CHECK-NEXT: "gpu_tile.tcgen05_mma"(%[[P]], %{{.*}}, %[[O]], %true
// CHECK-NEXT: "gpu_tile.ring_release"(%[[V]], %[[VAT]]) {by = "products"}
// CHECK: %[[LAST:.*]] = "gpu_tile.ring_slot"(%[[DONE]], %[[OWN]])
// CHECK: "gpu_tile.ring_publish"(%[[DONE]], %[[LAST]]) {by = "products"}
// CHECK-NOT: ring_wait
// CHECK: scf.yield
// CHECK: "gpu_tile.ring_wait"(%[[DONE]], %{{.*}}) {previous = true}
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[O]])
// CHECK: name = "compute"
func.func @two_products(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %v: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                        %o: memref<?x?xf32, strided<[?, 1]>>, %scale: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bn = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !s
  %factor = tensor.splat %scale : !s
  %size = memref.dim %k, %c0 : !m
  %tq = "tile.load"(%q, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
  %acc = scf.for %n = %c0 to %size step %bn iter_args(%sum = %zero) -> (!s) {
    %tk = "tile.load"(%k, %n, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %s = "tile.dot"(%tq, %tk, %zero) {options = {}} : (!q, !q, !s) -> !s
    %e = math.exp2 %s : !s
    %scaled = arith.mulf %sum, %factor : !s
    %p = arith.truncf %e : !s to !q
    %tv = "tile.load"(%v, %n, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !q
    %next = "tile.dot"(%p, %tv, %scaled) {options = {}} : (!q, !q, !s) -> !s
    scf.yield %next : !s
  }
  "tile.store"(%acc, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
