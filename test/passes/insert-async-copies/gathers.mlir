// Rows gathered by number are copied like rows of a tile, if a group of them is neighbours.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!p = memref<?xi32, strided<[1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
#across = #gpu_tile.layout<"T(8,16):(8@0,1@1) V(8):(1@0)">
#rows = #gpu_tile.layout<"T(8,16):(0,1@0) V():()">
!t = tensor<16x64xf16, #ld>
!i = tensor<16x64xi32, #ld>
!ok = tensor<16x64xi1, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
!bt = !gpu_tile.buffer<tensor<64x16xf16>, #gpu_tile.shared<"(64,16):(1,64)">>

// The copies of one iteration are one group, with what makes numbers between them.
// CHECK-LABEL: @rows_by_number
// CHECK: scf.for
// CHECK-NOT: tile.gather
// CHECK: %[[S:.*]] = "gpu_tile.alloc"()
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %[[S]], %true{{[^,]*}}, %[[OK:[^,]*]], %[[ROW:[^,]*]], %{{.*}}) {bytes = 16 : i32, cache = "cg"}
// CHECK: "gpu_tile.cp_async"
// CHECK-NEXT: "gpu_tile.cp_async_commit"
// CHECK-NEXT: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.cp_async_commit
// CHECK-NOT: gpu_tile.buffer_store
func.func @rows_by_number(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m, %row: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %at = "tile.iota"() {axis = 1 : i32} : () -> !i
  scf.for %k = %c0 to %n step %c64 {
    %k32 = arith.index_cast %k : index to i32
    %ks = tensor.splat %k32 : !i
    %column = arith.addi %ks, %at : !i
    %t = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %again = arith.addi %ks, %column : !i
    %u = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%u, %x) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    %q = "gpu_tile.buffer_load"(%x) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.store"(%q, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// A transpose on the way is one of the numbers and the mask.
// CHECK-LABEL: @transposed
// CHECK: %[[OK:.*]] = "tile.transpose"({{.*}} -> tensor<64x16xi1
// CHECK: %[[ROW:.*]] = "tile.transpose"(%arg2) {permutation = array<i32: 1, 0>} : {{.*}} -> tensor<64x16xi32
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %{{.*}}, %[[OK]], %[[ROW]], %{{.*}}) {bytes = 16
func.func @transposed(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m, %row: !i, %column: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %v = "tile.transpose"(%t) {permutation = array<i32: 1, 0>} : (!t) -> tensor<64x16xf16, #across>
    %s = "gpu_tile.alloc"() {options = {}} : () -> !bt
    "gpu_tile.buffer_store"(%v, %s) : (tensor<64x16xf16, #across>, !bt) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!bt) -> tensor<64x16xf16, #across>
    "tile.store"(%r, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x16xf16, #across>, !m, index, index) -> ()
  }
  return
}

// Numbers that the loop loads can be loaded ahead, too.
// CHECK-LABEL: @numbers_from_the_loop
// CHECK: %[[OF:.*]] = "tile.load"(%arg2
// CHECK: %[[ROW:.*]] = "tile.broadcast"(%[[OF]])
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %{{.*}}, %{{.*}}, %[[ROW]],
// CHECK: "gpu_tile.cp_async"
// CHECK-NOT: tile.gather
func.func @numbers_from_the_loop(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m, %numbers: !p, %column: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  scf.for %k = %c0 to %n step %c16 {
    %of = "tile.load"(%numbers, %k) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!p, index) -> tensor<16xi32, #rows>
    %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<16xi32, #rows>) -> !i
    %t = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %u = "tile.load"(%a, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%u, %x) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    %q = "gpu_tile.buffer_load"(%x) : (!b) -> !t
    "tile.store"(%r, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.store"(%q, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// Not those that it writes: the other copies had better run ahead without them.
// CHECK-LABEL: @numbers_that_change
// CHECK: "tile.gather"
// CHECK: "gpu_tile.cp_async"
// CHECK-NOT: cp_async_gather
func.func @numbers_that_change(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m, %numbers: !p, %column: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  scf.for %k = %c0 to %n step %c16 {
    %of = "tile.load"(%numbers, %k) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!p, index) -> tensor<16xi32, #rows>
    %more = arith.addi %of, %of : tensor<16xi32, #rows>
    "tile.store"(%more, %numbers, %k) {dims = array<i32: 0>, options = {}} : (tensor<16xi32, #rows>, !p, index) -> ()
    %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<16xi32, #rows>) -> !i
    %t = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %u = "tile.load"(%a, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%u, %x) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    %q = "gpu_tile.buffer_load"(%x) : (!b) -> !t
    "tile.store"(%r, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.store"(%q, %o, %k, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// No run, other padding than zeros, use in registers.
// CHECK-LABEL: @not_copied
// CHECK-COUNT-3: "tile.gather"
// CHECK-NOT: cp_async_gather
func.func @not_copied(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: !m, %row: !i, %column: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1.0> : !t
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {}} : (!m, !ok, !t, !i, !i) -> !t
    %u = "tile.gather"(%a, %ok, %one, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %v = "tile.gather"(%a, %ok, %zero, %row, %column) {options = {run = array<i32: 1, 8>}} : (!m, !ok, !t, !i, !i) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%u, %x) : (!t, !b) -> ()
    %y = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%v, %y) : (!t, !b) -> ()
    "tile.store"(%v, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
