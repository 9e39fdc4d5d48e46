// A load role of four warps fills for eight that compute: by cp.async, and through its registers,
// where a thread takes over what two did.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 8 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-LABEL: @matmul
// CHECK-SAME: tile.total_warps = 12 : i32
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 132 : i32, options = {}, releases = 2 : i32, slots = 2 : i32}
// CHECK: "gpu_tile.role"
// CHECK: %[[X:.*]] = "tile.load"(%arg0, {{.*}}#gpu_tile.layout<"T(64,2):(1@1,1@0) V(32,2):(4@0,2@0)">
// CHECK: %[[Y:.*]] = arith.extf %[[X]]
// CHECK: %[[Z:.*]] = arith.truncf
// CHECK: %[[P:.*]] = "gpu_tile.ring_acquire"(%[[RING]],
// CHECK: "gpu_tile.buffer_store"(%[[Z]]
// CHECK: "gpu_tile.cp_async"(%arg1
// CHECK: "gpu_tile.ring_publish"(%[[RING]], %[[P]]) {by = "copies"}
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[RING]], %[[P]]) {by = "warp"}
// CHECK-NOT: wgmma
// CHECK: first_warp = 8 : i32, name = "load", registers = {{[0-9]+}} : i32, warps = 4 : i32
// What is loaded there is not loaded here.
// CHECK: "gpu_tile.role"
// CHECK-NOT: "tile.load"
// CHECK-NOT: arith.extf
// CHECK: %[[Q:.*]] = "gpu_tile.ring_wait"(%[[RING]]
// CHECK: "gpu_tile.wgmma"
// CHECK: "gpu_tile.ring_release"(%[[RING]], %[[Q]]) {by = "warpgroup"}
// CHECK: first_warp = 0 : i32, name = "compute"
func.func @matmul(%a: !m, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %wide = arith.extf %ta : !a to tensor<128x64xf32>
    %twice = arith.addf %wide, %wide : tensor<128x64xf32>
    %back = arith.truncf %twice : tensor<128x64xf32> to !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%back, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 2 : i32, tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
