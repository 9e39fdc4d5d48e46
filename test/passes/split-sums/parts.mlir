// Each of four CTAs sums a quarter of the iterations; the first gets the others' sums and does the rest.
// RUN: tilec opt %s --passes split-sums --target sm_90a --num-warps 1 | filecheck %s

!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!m = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @product
// CHECK-SAME: tile.stripes = 4 : i32
// CHECK-NOT: tile.sum_parts
func.func @product(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 4 : i32} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[STEP:.*]] = arith.constant 16 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  // CHECK: %[[PART:.*]] = "tile.stripe_id"()
  // CHECK: %[[LENGTH:.*]] = arith.subi %arg1, %arg0
  // CHECK: %[[STEPS:.*]] = arith.divsi %{{.*}}, %[[STEP]]
  // CHECK: %[[DONE:.*]] = arith.muli %[[PART]], %[[STEPS]]
  // CHECK: %[[BEFORE:.*]] = arith.divsi %[[DONE]], %c4
  // CHECK: %[[AWAY:.*]] = arith.muli %[[BEFORE]], %[[STEP]]
  // CHECK: %[[FROM:.*]] = arith.addi %arg0, %[[AWAY]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[PART]], %c1
  // CHECK: %[[TO:.*]] = arith.addi %arg0, %{{.*}}
  // CHECK: %[[ALL:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<3x16x8xf32>
  // CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %[[STEP]]
  %sum = scf.for %k = %low to %high step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  // CHECK: %[[NUMBER:.*]] = arith.index_cast %[[PART]] : index to i32
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[NUMBER]], %c0
  // CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
  // CHECK: %[[OTHER:.*]] = arith.xori %[[FIRST]], %true
  // CHECK: scf.if %[[OTHER]] {
  // CHECK: %[[MY:.*]] = arith.subi %[[NUMBER]], %c1
  // CHECK: %[[SLOT:.*]] = "gpu_tile.slot"(%[[ALL]], %[[MY]])
  // CHECK: "gpu_tile.cluster_send"(%[[MINE]], %[[SLOT]])
  // CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
  // CHECK: scf.if %[[FIRST]] {
  // CHECK: %[[A:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[AB:.*]] = arith.addf %[[MINE]], %[[A]]
  // CHECK: %[[B:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[ABC:.*]] = arith.addf %[[AB]], %[[B]]
  // CHECK: %[[C:.*]] = "gpu_tile.buffer_load"
  // CHECK: %[[TOTAL:.*]] = arith.addf %[[ABC]], %[[C]]
  // CHECK: "tile.store"(%[[TOTAL]]
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// In one part it is as it was.
// CHECK-LABEL: @whole
// CHECK-NOT: stripe
// CHECK: scf.for %{{.*}} = %arg0 to %arg1
func.func @whole(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 1 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %low to %high step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}
