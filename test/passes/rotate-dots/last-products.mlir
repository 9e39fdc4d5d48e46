// Of four products the last two, which add up what the first two gave, run in the next iteration.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots --target sm_90a --num-warps 4 | filecheck %s
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps,rotate-dots,overlap-mma,delay-waits --target sm_90a --num-warps 4 | filecheck %s --check-prefix=WAITS

!m = memref<?x64xbf16, strided<[64, 1]>>
!v = memref<?xf32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @gradients
// CHECK: name = "load"
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER:.*]], %[[UPPER:.*]] : index
// CHECK: scf.if %[[ANY]]
// The first iteration but for its last products: their slots stay.
// CHECK: gpu_tile.ring_wait
// CHECK-COUNT-2: "gpu_tile.wgmma"(
// CHECK-NOT: "gpu_tile.wgmma"(
// CHECK: %[[SECOND:.*]] = arith.addi %[[LOWER]], %{{.*}} : index
// CHECK: scf.for %{{.*}} = %[[SECOND]] to %[[UPPER]] {{.*}} iter_args({{.*}}, %[[COUNT:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %[[D:.*]] = %{{.*}}) ->
// CHECK-COUNT-2: "gpu_tile.wgmma"(
// CHECK: "gpu_tile.wgmma_wait"
// CHECK-NEXT: %{{.*}} = arith.constant 1 : i32
// CHECK-NEXT: %[[BEFORE:.*]] = arith.subi %[[COUNT]]
// CHECK: %[[G:.*]] = "gpu_tile.ring_slot"(%[[GRADS:.*]], %[[BEFORE]])
// CHECK: "gpu_tile.wgmma"(%[[P]],
// CHECK-NEXT: "gpu_tile.wgmma_wait"
// CHECK-NEXT: "gpu_tile.ring_release"(%[[GRADS]], %[[G]])
// CHECK: %[[Q:.*]] = "gpu_tile.ring_slot"(%[[QUERIES:.*]], %[[BEFORE]])
// CHECK: "gpu_tile.wgmma"(%[[D]],
// CHECK-NEXT: "gpu_tile.wgmma_wait"
// CHECK-NEXT: "gpu_tile.ring_release"(%[[QUERIES]], %[[Q]])
// What threads read goes back in its own iteration.
// CHECK: "gpu_tile.ring_release"({{.*}}) {by = "warp"}
// Registers that products take are written when these are done.
// CHECK: arith.mulf
// CHECK-COUNT-2: arith.truncf
// CHECK: scf.yield
// CHECK-COUNT-2: "gpu_tile.wgmma"(
// CHECK: scf.yield
// CHECK: else
// CHECK-NEXT: scf.yield

// WAITS-LABEL: @gradients
// WAITS: name = "load"
// The first iteration has its two side by side, too.
// WAITS: "gpu_tile.wgmma_wait"({{.*}}) {pending = 1 : i32}
// WAITS: scf.for
// WAITS: %[[S:.*]] = "gpu_tile.wgmma"(
// WAITS-NOT: gpu_tile.wgmma_wait
// WAITS: %[[W:.*]] = "gpu_tile.wgmma"(
// WAITS-NOT: gpu_tile.wgmma_wait
// WAITS: %[[V:.*]] = "gpu_tile.wgmma"(
// WAITS-NOT: gpu_tile.wgmma_wait
// WAITS: %[[K:.*]] = "gpu_tile.wgmma"(
// WAITS: "gpu_tile.wgmma_wait"(%[[S]]) {pending = 3 : i32}
// WAITS: math.exp2
// WAITS: "gpu_tile.wgmma_wait"(%[[W]]) {pending = 2 : i32}
// WAITS: arith.mulf
// WAITS: "gpu_tile.wgmma_wait"(%[[V]]) {pending = 1 : i32}
// WAITS: "gpu_tile.wgmma_wait"(%[[K]]) {pending = 0 : i32}
// WAITS: arith.truncf
// WAITS: scf.yield
func.func @gradients(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %g: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                     %off: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}},
                     %dk: memref<?x64xf32, strided<[64, 1]>>, %dv: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sums:2 = scf.for %i = %c0 to %rows step %bm iter_args(%sk = %zero, %sv = %zero) -> (!c, !c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %grad = "tile.load"(%g, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %o = "tile.load"(%off, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<64xf32>
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %gt = "tile.transpose"(%grad) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %p = math.exp2 %s : !c
    %pn = arith.truncf %p : !c to !a
    %nv = "tile.dot"(%pn, %grad, %sv) {options = {}} : (!a, !a, !c) -> !c
    %w = "tile.dot"(%key, %gt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %os = "tile.broadcast"(%o) {dims = array<i32: 1>} : (tensor<64xf32>) -> !c
    %wo = arith.subf %w, %os : !c
    %d = arith.mulf %p, %wo : !c
    %dn = arith.truncf %d : !c to !a
    %nk = "tile.dot"(%dn, %query, %sk) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %nk, %nv : !c, !c
  }
  "tile.store"(%sums#0, %dk, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  "tile.store"(%sums#1, %dv, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
