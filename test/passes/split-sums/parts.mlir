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

// Loops in loops are one sum: parts share the outer one, whose iterations are a multiple of them.
// CHECK-LABEL: @outer
// CHECK: %[[LENGTH:.*]] = arith.subi %c4{{.*}}, %c0
// CHECK: %[[FROM:.*]] = arith.addi %c0
// CHECK: %[[TO:.*]] = arith.addi %c0
// CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// CHECK-NEXT: scf.for %{{.*}} = %arg0 to %arg1
// CHECK: "gpu_tile.cluster_send"(%[[MINE]]
func.func @outer(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %head = %c0 to %c4 step %c1 iter_args(%t = %zero) -> (!c) {
    %inner = scf.for %k = %low to %high step %c16 iter_args(%s = %t) -> (!c) {
      %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %inner : !c
  }
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Of three iterations two parts share those of the inner loop.
// CHECK-LABEL: @inner
// CHECK: "tile.stripe_id"()
// CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %c0 to %c3
// CHECK: %[[LENGTH:.*]] = arith.subi %arg1, %arg0
// CHECK: %[[FROM:.*]] = arith.addi %arg0
// CHECK: %[[TO:.*]] = arith.addi %arg0
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// CHECK: "gpu_tile.cluster_send"(%[[MINE]]
func.func @inner(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %head = %c0 to %c3 step %c1 iter_args(%t = %zero) -> (!c) {
    %inner = scf.for %k = %low to %high step %c16 iter_args(%s = %t) -> (!c) {
      %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
      scf.yield %d : !c
    }
    scf.yield %inner : !c
  }
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Two sums of 40960 bytes come one after the other, through one buffer.
!rows = tensor<1280x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2,80):(1@1,8@0,8@1,16@0)">>
!sums = tensor<1280x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,80):(1@1,8@0,16@0)">>
// CHECK-LABEL: @turns
// CHECK: %[[PARTS:.*]] = "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<1x1280x8xf32>
// CHECK-NOT: "gpu_tile.alloc"
// CHECK: %[[MINE:.*]]:2 = scf.for
// CHECK: "gpu_tile.cluster_sync"() {order = "relaxed"}
// CHECK: scf.if
// CHECK: "gpu_tile.cluster_send"(%[[MINE]]#0
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[A:.*]] = scf.if
// CHECK: arith.addf %[[MINE]]#0
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[MINE]]#0
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: "gpu_tile.cluster_send"(%[[MINE]]#1
// CHECK: "gpu_tile.cluster_sync"() {order = "acq_rel"}
// CHECK: %[[B:.*]] = arith.addf %[[MINE]]#1
// CHECK: "tile.store"(%[[A]]
// CHECK: "tile.store"(%[[B]]
func.func @turns(%low: index, %high: index, %x: !rows, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !sums
  %a, %b = scf.for %k = %low to %high step %c16 iter_args(%s = %zero, %t = %zero) -> (!sums, !sums) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!rows, !y, !sums) -> !sums
    %e = "tile.dot"(%x, %y, %t) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!rows, !y, !sums) -> !sums
    scf.yield %d, %e : !sums, !sums
  }
  "tile.store"(%a, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sums, !m, index, index) -> ()
  "tile.store"(%b, %to, %c0, %c16) {dims = array<i32: 0, 1>, options = {}} : (!sums, !m, index, index) -> ()
  return
}
