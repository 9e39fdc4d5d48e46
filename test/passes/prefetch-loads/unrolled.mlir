// Warps that do not wait for each other: eight iterations a turn, in front of whose work stand the loads of the
// next turn, from the same tiles in the last turn. What is left of the iterations, seven at most, is written out, as four
// and up to three, or two and up to one, or one, the loads of all in front, and those that may be behind branches.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 1 > %t.once
// RUN: filecheck %s < %t.once
// RUN: tilec opt %t.once --passes prefetch-loads --target sm_90a --num-warps 1 | diff %t.once -

!x = memref<?x32xf32, strided<[32, 1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!w = tensor<256xf32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>

// CHECK-LABEL: func.func @walk(
// CHECK: %[[WAY:.*]] = arith.subi %[[N:.*]], %[[P:.*]] : index
// CHECK: %[[BEHIND:.*]] = arith.addi %[[WAY]], %c3
// CHECK: %[[LEFT:.*]] = arith.subi %[[BEHIND]], %c1
// CHECK: %[[TURNS:.*]] = arith.divsi %[[LEFT]], %c24
// CHECK: %[[ALL:.*]] = arith.muli %[[TURNS]], %c24
// CHECK: %[[END:.*]] = arith.addi %[[P]], %[[ALL]]
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[P]], %[[END]]
// CHECK: %[[FIRST:.*]]:8 = scf.if %[[ANY]]
// CHECK-COUNT-8: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: } else {
// CHECK-NOT: "tile.load"
// CHECK: %[[MAIN:.*]]:9 = scf.for %[[I:.*]] = %[[P]] to %[[END]] step %c24 iter_args(%[[H:.*]] = %{{.*}}, %[[A:.*]] = %[[FIRST]]#0, %[[B:.*]] = %[[FIRST]]#1,
// CHECK: %[[LATER:.*]] = arith.addi %[[I]], %c24
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[LATER]], %[[END]]
// CHECK: %[[AT:.*]] = arith.select %[[MORE]], %[[LATER]], %[[I]]
// CHECK: %[[NEXT:.*]] = "tile.load"(%arg0, %[[AT]], %c0)
// CHECK-COUNT-7: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: %[[ONE:.*]] = arith.mulf %[[H]], %[[A]]
// CHECK: "tile.store"(%[[ONE]], %arg1, %[[I]], %c0)
// CHECK: %[[TWO:.*]] = arith.mulf %[[ONE]], %[[B]]
// CHECK: "tile.store"(%[[TWO]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]],
// CHECK: %[[J3:.*]] = arith.addi %[[END]], %{{.*}} : index
// CHECK: %[[MANY:.*]] = arith.cmpi slt, %[[J3]], %[[N]]
// CHECK: scf.if %[[MANY]]
// CHECK: %[[IS1:.*]] = arith.cmpi slt, %[[J1:.*]], %[[N]]
// CHECK: %[[AT1:.*]] = arith.select %[[IS1]], %[[J1]], %[[END]]
// CHECK: %[[V0:.*]] = "tile.load"(%arg0, %[[END]], %c0)
// CHECK: %[[V1:.*]] = "tile.load"(%arg0, %[[AT1]], %c0)
// CHECK-COUNT-5: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: %[[R0:.*]] = arith.mulf %[[MAIN]]#0, %[[V0]]
// CHECK: "tile.store"(%[[R0]], %arg1, %[[END]], %c0)
// CHECK-NOT: scf.if
// CHECK: %[[R1:.*]] = arith.mulf %[[R0]], %[[V1]]
// CHECK: "tile.store"(%[[R1]], %arg1, %[[J1]], %c0)
// CHECK: arith.mulf
// CHECK: %[[R3:.*]] = arith.mulf
// CHECK: %[[THERE:.*]] = arith.cmpi slt, %[[J4:.*]], %[[N]]
// CHECK: %[[R4:.*]] = scf.if %[[THERE]]
// CHECK: %[[MADE:.*]] = arith.mulf %[[R3]]
// CHECK: "tile.store"(%[[MADE]], %arg1, %[[J4]], %c0)
// CHECK: scf.yield %[[MADE]]
// CHECK: } else {
// CHECK: scf.yield %[[R3]]
// CHECK: %[[K1:.*]] = arith.addi %[[END]], %{{.*}} : index
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[K1]], %[[N]]
// CHECK: scf.if %[[SOME]]
// CHECK-COUNT-3: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[END]], %[[N]]
// CHECK: scf.if %[[ANY]]
// CHECK: "tile.load"(%arg0, %[[END]], %c0)
// CHECK-NOT: "tile.load"
// CHECK: } else {
// CHECK: scf.yield %[[MAIN]]#0
// CHECK-NOT: scf.for
// CHECK: return
func.func @walk(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1.0> : !t
  %n = memref.dim %x, %c0 : !x
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %r = scf.for %i = %p to %n step %c3 iter_args(%h = %one) -> (!t) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %next = arith.mulf %h, %v : !t
    "tile.store"(%next, %y, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
    scf.yield %next : !t
  }
  return
}

// A loop that ends where memory says, from a place that it does not say.
// CHECK-LABEL: func.func @lengths(
// CHECK: %[[FIRST:.*]]:8 = scf.if
// CHECK-COUNT-8: "tile.load"(%arg0
// CHECK: scf.for
// CHECK: tile.loads_ahead
// CHECK: scf.if
func.func @lengths(%x: !x, %y: !x, %of: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : !t
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %e = "tile.load"(%of, %p) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %l = tensor.extract %e[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %n = arith.index_cast %l : i32 to index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %one) -> (!t) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %next = arith.mulf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %p, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}

// A number of 16 bits that tells no other load where it goes comes with the tiles.
// CHECK-LABEL: func.func @shares(
// CHECK: %[[FIRST:.*]]:16 = scf.if
// CHECK-COUNT-16: "tile.load"
// CHECK: } else {
// CHECK: scf.for
// CHECK-COUNT-8: "tile.load"(%arg1
// CHECK-NOT: "tile.load"
// CHECK: arith.mulf
// CHECK: tile.loads_ahead
func.func @shares(%x: !x, %of: memref<?xf16, strided<[1]>>, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : !t
  %n = memref.dim %x, %c0 : !x
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %one) -> (!t) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %share = "tile.load"(%of, %i) {dims = array<i32>, options = {}, padding = 0.0 : f16} : (memref<?xf16, strided<[1]>>, index) -> tensor<f16, #gpu_tile.layout<"T(32):(0) V():()">>
    %number = tensor.extract %share[] : tensor<f16, #gpu_tile.layout<"T(32):(0) V():()">>
    %wide = arith.extf %number : f16 to f32
    %all = tensor.splat %wide : !t
    %part = arith.mulf %all, %v : !t
    %next = arith.addf %h, %part : !t
    "tile.store"(%next, %y, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
    scf.yield %next : !t
  }
  return
}

// Rows by numbers, of which each is loaded once: in front of the first turn eight and eight, in a turn as many for the
// next, and for what is left seven numbers, then their seven rows.
// CHECK-LABEL: func.func @bag(
// CHECK: scf.if
// CHECK-COUNT-8: "tile.load"(%arg1
// CHECK: } else {
// CHECK: scf.for
// CHECK-COUNT-8: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: tile.loads_ahead
// CHECK: scf.if
// CHECK-COUNT-7: "tile.load"(%arg1
// CHECK-COUNT-7: "tile.load"(%arg0
// CHECK-COUNT-3: "tile.load"(%arg1
// CHECK-COUNT-3: "tile.load"(%arg0
// CHECK: "tile.load"(%arg1
// CHECK-NEXT: tensor.extract
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: return
func.func @bag(%x: !x, %of: memref<?xi32, strided<[1]>>, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0.0> : !t
  %n = memref.dim %of, %c0 : memref<?xi32, strided<[1]>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %none) -> (!t) {
    %e = "tile.load"(%of, %i) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
    %l = tensor.extract %e[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
    %at = arith.index_cast %l : i32 to index
    %v = "tile.load"(%x, %at, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %next = arith.addf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}

// Elements that come one by one: nothing is carried, and a turn of four begins with its own loads, numbers in front.
// CHECK-LABEL: func.func @odd_bag(
// CHECK: scf.for
// CHECK-SAME: iter_args(%{{[a-z0-9]*}} = %{{[a-z0-9]*}}) ->
// CHECK-COUNT-4: "tile.load"(%arg1
// CHECK-COUNT-4: "tile.load"(%arg0
// CHECK-COUNT-4: arith.addf
// CHECK: tile.loads_ahead
// CHECK-COUNT-3: "tile.load"(%arg1
// CHECK-COUNT-3: "tile.load"(%arg0
// CHECK: "tile.load"(%arg1
// CHECK: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK: return
func.func @odd_bag(%x: memref<?x33xf16, strided<[33, 1]>>, %of: memref<?xi32, strided<[1]>>, %y: memref<?x33xf16, strided<[33, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant dense<0.0> : tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
  %n = memref.dim %of, %c0 : memref<?xi32, strided<[1]>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %none) -> (tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>) {
    %e = "tile.load"(%of, %i) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
    %l = tensor.extract %e[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
    %at = arith.index_cast %l : i32 to index
    %v = "tile.load"(%x, %at, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f16} : (memref<?x33xf16, strided<[33, 1]>>, index, index) -> tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
    %next = arith.addf %h, %v : tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
    scf.yield %next : tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>, memref<?x33xf16, strided<[33, 1]>>, index, index) -> ()
  return
}

// Lanes meet in each iteration: 4 of them take as long as memory does, and leave registers for other warps.
// CHECK-LABEL: func.func @sums(
// CHECK: %[[FIRST:.*]]:4 = scf.if
// CHECK-COUNT-4: "tile.load"
// CHECK: } else {
func.func @sums(%x: memref<?x256xf32, strided<[256, 1]>>, %y: memref<?x256xf32, strided<[256, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : !w
  %n = memref.dim %x, %c0 : memref<?x256xf32, strided<[256, 1]>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %one) -> (!w) {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (memref<?x256xf32, strided<[256, 1]>>, index, index) -> !w
    %both = arith.mulf %h, %v : !w
    %s = "tile.reduce"(%both) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!w) -> tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>
    %sum = tensor.extract %s[] : tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>
    %all = tensor.splat %sum : !w
    %next = arith.addf %h, %all : !w
    scf.yield %next : !w
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!w, memref<?x256xf32, strided<[256, 1]>>, index, index) -> ()
  return
}
