// On 12.x tensor copies bring what warps read as fragments: the buffers lie in swizzled panels, and
// the copies into them publish one ring. Elsewhere, and in fewer warps than a warpgroup, beside
// which none could load, they are cp.async.
// RUN: tilec opt %s --passes infer-layouts,stage-operands,insert-async-copies --num-warps 4 --target sm_120a | filecheck %s
// RUN: tilec opt %s --passes infer-layouts,stage-operands,insert-async-copies --num-warps 4 --target sm_89 | filecheck %s --check-prefix THREADS
// RUN: tilec opt %s --passes infer-layouts,stage-operands,insert-async-copies --num-warps 2 --target sm_120a | filecheck %s --check-prefix THREADS

!m = memref<?x?xf16, strided<[?, 1]>>
!a = tensor<64x64xf16>
!c = tensor<64x64xf32>

// CHECK: scf.for
// CHECK: %[[A:.*]] = "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">
// CHECK: %[[B:.*]] = "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_slot"(%[[RING:.*]], %{{.*}})
// CHECK: "gpu_tile.ring_announce"(%[[RING]], %[[SLOT]]) {bytes = 16384 : i32}
// CHECK: "gpu_tile.tma_load"(%{{.*}}, %[[A]], %[[RING]], %[[SLOT]]
// CHECK: "gpu_tile.tma_load"(%{{.*}}, %[[B]], %[[RING]], %[[SLOT]]
// CHECK: "gpu_tile.ring_wait"(%[[RING]]
// CHECK: "gpu_tile.mma"
// THREADS-NOT: tma_load
// THREADS: "gpu_tile.cp_async"
func.func @product(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                   %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                   %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%ta, %tb, %sum) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
