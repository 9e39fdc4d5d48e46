// Each of four CTAs sums a quarter of the iterations, and does the rest for a quarter of the rows.
// RUN: tilec opt %s --passes split-sums --target sm_90a --num-warps 1 | filecheck %s

!x = tensor<16x16xf16>
!y = tensor<16x8xf16>
!c = tensor<16x8xf32>
!m = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @product
// CHECK-SAME: tile.stripes = 4 : i32
// CHECK-NOT: tile.sum_parts
func.func @product(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 4 : i32} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[PART:.*]] = "tile.stripe_id"()
  // CHECK: %[[ROW:.*]] = arith.muli %[[PART]], %c4
  // CHECK: %[[STEP:.*]] = arith.constant 16 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  // CHECK: %[[LENGTH:.*]] = arith.subi %arg1, %arg0
  // CHECK: %[[STEPS:.*]] = arith.divsi %{{.*}}, %[[STEP]]
  // CHECK: %[[DONE:.*]] = arith.muli %[[PART]], %[[STEPS]]
  // CHECK: %[[BEFORE:.*]] = arith.divsi %[[DONE]], %c4
  // CHECK: %[[AWAY:.*]] = arith.muli %[[BEFORE]], %[[STEP]]
  // CHECK: %[[FROM:.*]] = arith.addi %arg0, %[[AWAY]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[PART]], %c1
  // CHECK: %[[TO:.*]] = arith.addi %arg0, %{{.*}}
  // CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %[[STEP]]
  %sum = scf.for %k = %low to %high step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  // CHECK: %[[SUM:.*]] = "tile.sum_stripes"(%[[MINE]]) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<16x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
  // CHECK: "tile.store"(%[[SUM]], %arg4, %[[AT]], %{{.*}}) {dims
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// What stands behind: rows of a bias for all columns, of what is there, their numbers; columns whole.
// CHECK-LABEL: @behind
// CHECK: %[[ROW:.*]] = arith.muli %{{.*}}, %c8
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: %[[SUM:.*]] = "tile.sum_stripes"(%{{.*}}) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<16x8xf32>) -> tensor<8x8xf32>
// CHECK: %[[ALL:.*]] = "tile.load"(%arg5, %{{.*}}) {{.*}} -> tensor<8xf32>
// CHECK: "tile.broadcast"(%[[ALL]]) {dims = array<i32: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: %[[OWN:.*]] = "tile.load"(%arg5, %[[AT]]) {{.*}} -> tensor<8xf32>
// CHECK: "tile.broadcast"(%[[OWN]]) {dims = array<i32: 0>} : (tensor<8xf32>) -> tensor<8x8xf32>
// CHECK: %[[COUNT:.*]] = "tile.iota"() {axis = 0 : i32} : () -> tensor<8x8xi32>
// CHECK: %[[BY:.*]] = tensor.splat
// CHECK: arith.addi %[[COUNT]], %[[BY]] : tensor<8x8xi32>
// CHECK: "tile.store"(%{{.*}}, %arg4, {{.*}}tensor<8x8xf32>
// CHECK: %[[TOTAL:.*]] = "tile.reduce"
// CHECK: (tensor<8x8xf32>) -> tensor<8xf32>
// CHECK: "tile.store"(%[[TOTAL]], %arg6
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: "tile.store"(%{{.*}}, %arg7
func.func @behind(%low: index, %high: index, %x: !x, %y: !y, %to: !m, %bias: memref<?xf32, strided<[1]>>, %rows: memref<?xf32, strided<[1]>>, %other: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %low to %high step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %r = "tile.load"(%bias, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<8xf32>
  %r2 = "tile.broadcast"(%r) {dims = array<i32: 1>} : (tensor<8xf32>) -> !c
  %q = "tile.load"(%bias, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<16xf32>
  %q2 = "tile.broadcast"(%q) {dims = array<i32: 0>} : (tensor<16xf32>) -> !c
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<16x8xi32>
  %f = arith.sitofp %i : tensor<16x8xi32> to !c
  %a = arith.addf %sum, %r2 : !c
  %b = arith.addf %a, %q2 : !c
  %e = arith.addf %b, %f : !c
  "tile.store"(%e, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  %t = "tile.reduce"(%sum) ({
  ^bb0(%p: f32, %u: f32):
    %v = arith.addf %p, %u : f32
    gpu.yield %v : f32
  }) {axis = 1 : i32} : (!c) -> tensor<16xf32>
  "tile.store"(%t, %rows, %c0) {dims = array<i32: 0>, options = {}} : (tensor<16xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  "tile.store"(%r, %other, %c0) {dims = array<i32: 0>, options = {}} : (tensor<8xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// Rows of the transposed sum stay whole: the stripes are columns of the sum.
// CHECK-LABEL: @transposed
// CHECK: "tile.sum_stripes"(%{{.*}}) {axis = 1 : i32, merges = ["arith.addf"]} : (tensor<16x8xf32>) -> tensor<16x4xf32>
// CHECK: "tile.transpose"(%{{.*}}) {permutation = array<i32: 1, 0>} : (tensor<16x4xf32>) -> tensor<4x16xf32>
func.func @transposed(%low: index, %high: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %low to %high step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %t = "tile.transpose"(%sum) {permutation = array<i32: 1, 0>} : (!c) -> tensor<8x16xf32>
  "tile.store"(%t, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<8x16xf32>, !m, index, index) -> ()
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
// CHECK: "tile.sum_stripes"(%[[MINE]]
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
// CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %{{.*}} to %c3
// CHECK: %[[LENGTH:.*]] = arith.subi %arg1, %arg0
// CHECK: %[[FROM:.*]] = arith.addi %arg0
// CHECK: %[[TO:.*]] = arith.addi %arg0
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// CHECK: "tile.sum_stripes"(%[[MINE]]
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

// What is scattered: each CTA the rows of its stripe, of indices and mask, too; where rows of the array lie the other
// way, columns; in a branch as well.
// CHECK-LABEL: @scattered
// CHECK: "tile.sum_stripes"(%{{.*}}) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<16x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[OWN:.*]] = "tile.gather"(%{{.*}}) {{.*}} -> tensor<4xf32>
// CHECK: scf.if
// CHECK: "tile.scatter"(%{{.*}}) {options = {}} : (tensor<4x8xf32>, memref<?x?xf32, strided<[?, 1]>>, tensor<4x8xi1>, tensor<4x8xindex>, tensor<4x8xindex>)
// CHECK-LABEL: @scattered_columns
// CHECK: "tile.sum_stripes"(%{{.*}}) {axis = 1 : i32, merges = ["arith.addf"]} : (tensor<16x8xf32>) -> tensor<16x2xf32>
func.func @scattered(%n: index, %b: i1, %x: !x, %y: !y, %to: !m, %w: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 4 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %yes = arith.constant dense<true> : tensor<16xi1>
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %row = "tile.iota"() {axis = 0 : i32} : () -> tensor<16xindex>
  %f = "tile.gather"(%w, %yes, %none, %row) {options = {}} : (memref<?xf32, strided<[1]>>, tensor<16xi1>, tensor<16xf32>, tensor<16xindex>) -> tensor<16xf32>
  %g = "tile.broadcast"(%f) {dims = array<i32: 0>} : (tensor<16xf32>) -> !c
  %v = arith.mulf %sum, %g : !c
  %rows = "tile.broadcast"(%row) {dims = array<i32: 0>} : (tensor<16xindex>) -> tensor<16x8xindex>
  %columns = "tile.iota"() {axis = 1 : i32} : () -> tensor<16x8xindex>
  %all = arith.constant dense<true> : tensor<16x8xi1>
  scf.if %b {
    "tile.scatter"(%v, %to, %all, %rows, %columns) {options = {}} : (!c, !m, tensor<16x8xi1>, tensor<16x8xindex>, tensor<16x8xindex>) -> ()
  }
  return
}

func.func @scattered_columns(%n: index, %x: !x, %y: !y, %to: memref<?x?xf32, strided<[1, ?]>>) attributes {tile.kernel, tile.sum_parts = 4 : i32} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c16 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %rows = "tile.iota"() {axis = 0 : i32} : () -> tensor<16x8xindex>
  %columns = "tile.iota"() {axis = 1 : i32} : () -> tensor<16x8xindex>
  %all = arith.constant dense<true> : tensor<16x8xi1>
  "tile.scatter"(%sum, %to, %all, %rows, %columns) {options = {}} : (!c, memref<?x?xf32, strided<[1, ?]>>, tensor<16x8xi1>, tensor<16x8xindex>, tensor<16x8xindex>) -> ()
  return
}

// A loop that adds up tiles which it loads: a half of the iterations each, and a half of the columns.
// CHECK-LABEL: @images
// CHECK-SAME: tile.stripes = 2 : i32
// CHECK: %[[MINE:.*]] = scf.for
// CHECK: "tile.sum_stripes"(%[[MINE]]) {axis = 0 : i32, merges = ["arith.addf"]} : (tensor<64xf32>) -> tensor<32xf32>
func.func @images(%n: index, %x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<64xf32>) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<64xf32>
    %t = arith.addf %s, %v : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  }
  "tile.store"(%sum, %y, %c0) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// The least that the loop meets, its place, and the greatest; of the least the place alone is used.
// CHECK-LABEL: @least
// CHECK: %[[MINE:.*]]:3 = scf.for
// CHECK: %[[LEAST:.*]]:2 = "tile.sum_stripes"(%[[MINE]]#1, %[[MINE]]#0) {axis = 0 : i32, merges = ["arith.minimumf", "olt 0"]}
// CHECK: %[[TOP:.*]] = "tile.sum_stripes"(%[[MINE]]#2) {axis = 0 : i32, merges = ["arith.maximumf"]}
// CHECK: "tile.store"(%[[LEAST]]#1, %arg3
// CHECK: "tile.store"(%[[TOP]], %arg4
func.func @least(%low: index, %high: index, %from: !m, %places: memref<?xi32, strided<[1]>>, %most: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 4 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant dense<1.0e30> : tensor<16xf32>
  %nowhere = arith.constant dense<-1> : tensor<16xi32>
  %r:3 = scf.for %k = %low to %high step %c1 iter_args(%place = %nowhere, %best = %start, %top = %start) -> (tensor<16xi32>, tensor<16xf32>, tensor<16xf32>) {
    %row = "tile.load"(%from, %k, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<16xf32>
    %more = arith.cmpf ogt, %best, %row : tensor<16xf32>
    %i = arith.index_cast %k : index to i32
    %here = tensor.splat %i : tensor<16xi32>
    %to = arith.select %more, %here, %place : tensor<16xi1>, tensor<16xi32>
    %less = arith.minimumf %best, %row : tensor<16xf32>
    %high2 = arith.maximumf %row, %top : tensor<16xf32>
    scf.yield %to, %less, %high2 : tensor<16xi32>, tensor<16xf32>, tensor<16xf32>
  }
  "tile.store"(%r#0, %places, %c0) {dims = array<i32: 0>, options = {}} : (tensor<16xi32>, memref<?xi32, strided<[1]>>, index) -> ()
  "tile.store"(%r#2, %most, %c0) {dims = array<i32: 0>, options = {}} : (tensor<16xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
