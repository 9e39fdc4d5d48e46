// Rows that begin and end where memory says, in steps of a few elements a lane that are only added up: four are loaded
// at once, in front of the sums, and what is left, three at most, is written out.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 1 | filecheck %s

!x = memref<?x32xf32, strided<[32, 1]>>
!line = memref<?xf32, strided<[1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// CHECK-LABEL: func.func @sparse(
// CHECK: scf.for
// CHECK-SAME: iter_args(%{{[a-z0-9]*}} = %{{[a-z0-9]*}}) ->
// CHECK-COUNT-4: "tile.load"(%arg0
// CHECK-NOT: "tile.load"
// CHECK-COUNT-4: arith.addf
// CHECK: tile.loads_ahead
// CHECK: scf.if
// CHECK-COUNT-3: "tile.load"(%arg0
// CHECK-NOT: scf.for
// CHECK: return
func.func @sparse(%x: !line, %y: !x, %of: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !t
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %p1 = arith.addi %p, %c1 : index
  %b = "tile.load"(%of, %p) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %e = "tile.load"(%of, %p1) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %b32 = tensor.extract %b[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %e32 = tensor.extract %e[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %from = arith.index_cast %b32 : i32 to index
  %to = arith.index_cast %e32 : i32 to index
  %r = scf.for %i = %from to %to step %c32 iter_args(%h = %zero) -> (!t) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!line, index) -> !t
    %next = arith.addf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %p, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}
