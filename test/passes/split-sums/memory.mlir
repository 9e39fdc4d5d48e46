// Parts that meet in memory: of more CTAs than a cluster has, and of kernels whose rest comes in no stripes.
// RUN: tilec opt %s --passes split-sums --target sm_90a --num-warps 1 | filecheck %s --check-prefixes=CHECK,CLUSTER
// RUN: tilec opt %s --passes split-sums --target sm_80 --num-warps 1 | filecheck %s --check-prefixes=CHECK,ALONE

!x = tensor<16x16xf16>
!y = tensor<16x8xf16>
!c = tensor<16x8xf32>
!m = memref<?x?xf32, strided<[?, 1]>>

// 256 parts of 512 bytes are more than one CTA had better read: clusters of two on sm_90a.
// CHECK-LABEL: @many
// CLUSTER-SAME: %[[FLAGS:[a-z0-9]*]]: memref<{{[0-9]*}}xi32, strided<[1]>> {tile.facts = {align = 16 : i32}, tile.workspace = "flags"}
// CLUSTER-SAME: %[[SUMS:[a-z0-9]*]]: memref<{{[0-9]*}}x128x8x8xf32, strided<[8192, 64, 8, 1]>> {tile.facts = {align = 16 : i32}, tile.workspace = "sums"}
// CLUSTER-SAME: tile.parts = 256 : i32, tile.stripes = 2 : i32
// CLUSTER: %[[PART:.*]] = "tile.part_id"()
// CLUSTER: "tile.stripe_id"()
// CLUSTER: %[[MINE:.*]] = scf.for
// CLUSTER: %[[STRIPES:.*]] = "tile.sum_stripes"(%[[MINE]])
// CLUSTER: %[[NUMBER:.*]] = arith.divsi %[[PART]]
// CLUSTER: "tile.program_id"() {axis = 1
// CLUSTER: "tile.program_id"() {axis = 0
// CLUSTER: "tile.num_programs"() {axis = 0
// CLUSTER: "tile.stripe_id"()
// CLUSTER: %[[PLACE:.*]] = arith.addi
// CLUSTER: "tile.store"(%[[STRIPES]], %[[SUMS]], %[[PLACE]], %[[NUMBER]], %{{.*}}, %{{.*}})
// CLUSTER: "tile.atomic_rmw"(%{{.*}}, %[[FLAGS]], %{{.*}}, %{{.*}}) {kind = "addi", options = {}, order = "acq_rel", scope = "gpu"}
// CLUSTER: scf.if
// CLUSTER: scf.for
// CLUSTER: %[[ALL:.*]] = "tile.load"(%[[SUMS]], %[[PLACE]]
// CLUSTER-SAME: tensor<128x8x8xf32>
// CLUSTER: "tile.reduce"(%[[ALL]])
// CLUSTER: "tile.store"(%{{.*}}, %[[FLAGS]], %[[PLACE]])
// CLUSTER: "tile.store"(%{{.*}}tensor<8x8xf32>
// CHECK: return
func.func @many(%n: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 256 : i32, tile.grid = ["4", "7", "1"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Elsewhere one CTA merges all.
// CHECK-LABEL: @few
// ALONE-SAME: memref<{{[0-9]*}}x4x16x8xf32, strided<[512, 128, 8, 1]>>
// ALONE-SAME: tile.parts = 4 : i32}
// ALONE-NOT: tile.stripe_id
// ALONE: "tile.store"(%{{.*}}: (tensor<16x8xf32>, memref<{{[0-9]*}}x4x16x8xf32
// CLUSTER: "tile.sum_stripes"
// CLUSTER-NOT: tile.atomic_rmw
// CHECK: return
func.func @few(%n: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 4 : i32, tile.grid = ["4", "7", "1"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// What adds up columns, and rows: neither stripes of rows nor of columns have both.
// CHECK-LABEL: @across
// CHECK-SAME: tile.parts = 2
// CHECK: "tile.store"(%{{.*}}: (tensor<16x8xf32>, memref<{{[0-9]*}}x2x16x8xf32
// CHECK: scf.if
// CHECK: "tile.reduce"
// CHECK: "tile.reduce"
// CHECK: "tile.reduce"
// CHECK: return
func.func @across(%n: index, %x: !x, %y: !y, %to: !m, %row: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %t = "tile.reduce"(%sum) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!c) -> tensor<8xf32>
  "tile.store"(%sum, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  "tile.store"(%t, %row, %c0) {dims = array<i32: 0>, options = {}} : (tensor<8xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  %w = "tile.reduce"(%sum) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (!c) -> tensor<16xf32>
  "tile.store"(%w, %row, %c0) {dims = array<i32: 0>, options = {}} : (tensor<16xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// What others notice happens once.
// CHECK-LABEL: @printed
// CHECK: scf.if
// CHECK: "tile.print"
func.func @printed(%n: index, %x: !x, %y: !y) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  "tile.print"(%sum) {format = "sum {}", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!c) -> ()
  return
}

// CHECK-LABEL: @elsewhere
// CHECK: scf.if
// CHECK: "tile.load"(%arg3
// CHECK: "tile.store"(%{{.*}}, %arg3
func.func @elsewhere(%n: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %before = "tile.load"(%to, %c1, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !c
  %e = arith.addf %sum, %before : !c
  "tile.store"(%e, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @whole
// CHECK: "tile.store"(%{{.*}}: (tensor<16x8xf32>, memref<{{[0-9]*}}x2x16x8xf32
// CHECK: scf.if
// CHECK: "tile.broadcast"
func.func @whole(%n: index, %x: !x, %y: !y, %to: !m) attributes {tile.kernel, tile.sum_parts = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  %rows = "tile.reduce"(%sum) ({
  ^bb0(%l: f32, %r: f32):
    %a = arith.addf %l, %r : f32
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (!c) -> tensor<16xf32>
  %all = "tile.reduce"(%rows) ({
  ^bb0(%l: f32, %r: f32):
    %a = arith.addf %l, %r : f32
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (tensor<16xf32>) -> tensor<f32>
  %whole = "tile.broadcast"(%all) {dims = array<i32>} : (tensor<f32>) -> !c
  %e = arith.addf %sum, %whole : !c
  "tile.store"(%e, %to, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// A row of columns' sums is all that meets: each part adds up its own first.
// CHECK-LABEL: @reduced
// CHECK: %[[MINE:.*]] = scf.for
// CHECK: %[[ROW:.*]] = "tile.reduce"(%[[MINE]])
// CHECK: "tile.store"(%[[ROW]], %{{.*}}: (tensor<8xf32>, memref<{{[0-9]*}}x128x8xf32
// CHECK: scf.if
// CHECK: arith.negf
func.func @reduced(%n: index, %x: !c, %to: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.sum_parts = 128 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (!c) {
    %d = arith.addf %s, %x : !c
    scf.yield %d : !c
  }
  %t = "tile.reduce"(%sum) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!c) -> tensor<8xf32>
  %u = arith.negf %t : tensor<8xf32>
  "tile.store"(%u, %to, %c0) {dims = array<i32: 0>, options = {}} : (tensor<8xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
