// A row's weights are loaded beside it; what is written, or known late, stays.
// RUN: tilec opt %s --passes hoist-loads --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
!t = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!s = tensor<f32, #gpu_tile.layout<"T():() V():()">>

// CHECK-LABEL: @row
// CHECK: %[[X:.*]] = "tile.load"(%[[A:.*]], %[[ROW:.*]], %{{.*}})
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[ROW]],
// CHECK-NEXT: %[[W:.*]] = "tile.load"(%{{.*}}, %[[AT]])
// CHECK-NEXT: "tile.reduce"(%[[X]])
// CHECK: "tile.store"
// CHECK-NEXT: arith.mulf %[[X]], %[[W]]
func.func @row(%a: !m, %w: !v, %s: !v, %y: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !s
  "tile.store"(%sum, %s, %row) {dims = array<i32>, options = {}} : (!s, !v, index) -> ()
  %at = arith.addi %row, %c1 : index
  %v = "tile.load"(%w, %at) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  %z = arith.mulf %x, %v : !t
  "tile.store"(%z, %y, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Another program, or this one, writes it.
// CHECK-LABEL: @written
// CHECK: "tile.store"
// CHECK-NEXT: "tile.load"
func.func @written(%a: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %one = arith.constant dense<1.0> : !t
  "tile.store"(%one, %a, %row) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  "tile.store"(%x, %a, %row) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// Where it is, only the sum says.
// CHECK-LABEL: @late
// CHECK: "tile.reduce"
// CHECK: "tile.load"(%{{.*}}, %{{.*}}) {dims = array<i32: 0>
func.func @late(%a: !v, %w: !v, %y: !v) attributes {tile.kernel} {
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !s
  %e = tensor.extract %sum[] : !s
  %i = arith.fptosi %e : f32 to i32
  %at = arith.index_cast %i : i32 to index
  %v = "tile.load"(%w, %at) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  "tile.store"(%v, %y, %row) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// 64 registers of a thread are too many.
// CHECK-LABEL: @long
// CHECK: "tile.reduce"
// CHECK: "tile.load"
!l = tensor<2048xf32, #gpu_tile.layout<"T(32):(1@0) V(64):(32@0)">>
func.func @long(%a: !v, %w: !v, %y: !v) attributes {tile.kernel} {
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !l
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!l) -> !s
  "tile.store"(%sum, %y, %row) {dims = array<i32>, options = {}} : (!s, !v, index) -> ()
  %v = "tile.load"(%w, %row) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !l
  %z = arith.mulf %x, %v : !l
  "tile.store"(%z, %y, %row) {dims = array<i32: 0>, options = {}} : (!l, !v, index) -> ()
  return
}

// 16 are too many as well, though they have room.
// CHECK-LABEL: @several
// CHECK: "tile.reduce"
// CHECK: "tile.load"
!h = tensor<512xf32, #gpu_tile.layout<"T(32):(1@0) V(16):(32@0)">>
func.func @several(%a: !v, %w: !v, %y: !v) attributes {tile.kernel} {
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !h
  %sum = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!h) -> !s
  "tile.store"(%sum, %y, %row) {dims = array<i32>, options = {}} : (!s, !v, index) -> ()
  %v = "tile.load"(%w, %row) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !h
  %z = arith.mulf %x, %v : !h
  "tile.store"(%z, %y, %row) {dims = array<i32: 0>, options = {}} : (!h, !v, index) -> ()
  return
}

// Whoever holds the lock may read what others wrote under it, however relaxed the lock is.
// CHECK-LABEL: @locked
// CHECK: scf.while
// CHECK: "tile.load"(%{{.*}}, %{{.*}}) {dims = array<i32: 0>
// CHECK-NEXT: "tile.store"
!i = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
!b = tensor<i1, #gpu_tile.layout<"T(32):(0) V():()">>
!k = memref<?xi32, strided<[1]>>
func.func @locked(%a: !v, %lock: !k) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : !i
  %one = arith.constant dense<1> : !i
  %all = arith.constant dense<true> : !b
  %c1_i32 = arith.constant 1 : i32
  scf.while : () -> () {
    %old = "tile.atomic_cas"(%zero, %one, %lock, %all, %zero) {order = "relaxed", scope = "gpu"} : (!i, !i, !k, !b, !i) -> !i
    %held = tensor.extract %old[] : !i
    %again = arith.cmpi eq, %held, %c1_i32 : i32
    scf.condition(%again)
  } do {
    scf.yield
  }
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}
