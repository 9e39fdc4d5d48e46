// Rows by number: what makes the numbers of an iteration's rows is made again for each copy ahead,
// and a copy past the last iteration is masked off, whatever its numbers are.
// RUN: tilec opt %s --passes pipeline-loops --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!i = tensor<16x64xi32, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @rows
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[ALONG:.*]] : tensor
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %{{.*}}, %[[OK:.*]], %[[ROW:arg2]], %[[FIRST]])
// CHECK: gpu_tile.cp_async_gather
// CHECK: scf.for %[[K:[a-z0-9]*]] =
// CHECK: arith.addi %[[K]], %c64
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c64
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[AHEAD]], %arg3
// CHECK: %[[K32:.*]] = arith.index_cast %[[AHEAD]]
// CHECK: %[[FROM:.*]] = tensor.splat %[[K32]]
// CHECK: %[[COLUMN:.*]] = arith.addi %[[FROM]], %[[ALONG]]
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %[[EXISTS]], %[[OK]], %[[ROW]], %[[COLUMN]])
// CHECK-NEXT: "gpu_tile.cp_async_commit"
// CHECK-NOT: cp_async_gather
func.func @rows(%a: !m, %o: !m, %row: !i, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  %ok = arith.constant dense<true> : tensor<16x64xi1, #ld>
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  scf.for %k = %c0 to %n step %c64 {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : !i
    %column = arith.addi %from, %along : !i
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %row, %column) {bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, tensor<16x64xi1, #ld>, !i, !i) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 3 : i32}
  return
}

// Numbers of rows out of an array without bounds: read for iterations that exist, in the prologue in
// branches, in the loop this iteration's again where there is no later one.
// CHECK-LABEL: @numbers
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %c0, %arg3
// CHECK: %[[N:.*]] = scf.if %[[SOME]] -> (tensor<16xi32
// CHECK: "tile.gather"(%arg1,
// CHECK: } else {
// CHECK: tile.broadcast"(%[[N]])
// CHECK: gpu_tile.cp_async_gather
// CHECK: scf.for %[[K:[a-z0-9]*]] =
// CHECK: %[[AHEAD:.*]] = arith.addi %{{.*}}, %c16
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[AHEAD]], %arg3
// CHECK: %[[AT:.*]] = arith.select %[[EXISTS]], %[[AHEAD]], %[[K]]
// CHECK: arith.index_cast %[[AT]]
// CHECK: "tile.gather"(%arg1,
// CHECK: "gpu_tile.cp_async_gather"(%arg0, %{{.*}}, %[[EXISTS]],
// CHECK-NOT: tile.gather
// CHECK: return
func.func @numbers(%a: memref<?xf16, strided<[1]>>, %table: memref<?xi32, strided<[1]>> {tile.unbounded = array<i32: 0>}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %yes = arith.constant true
  %ok = arith.constant dense<true> : tensor<16x64xi1, #ld>
  %all = arith.constant dense<true> : tensor<16xi1, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
  %none = arith.constant dense<0> : tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
  %down = "tile.iota"() {axis = 0 : i32} : () -> tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
  scf.for %k = %c0 to %n step %c16 {
    %k32 = arith.index_cast %k : index to i32
    %from = tensor.splat %k32 : tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
    %at = arith.addi %from, %down : tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
    %number = "tile.gather"(%table, %all, %none, %at) {options = {}} : (memref<?xi32, strided<[1]>>, tensor<16xi1, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>, tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>, tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>) -> tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>
    %rows = "tile.broadcast"(%number) {dims = array<i32: 0>} : (tensor<16xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V():()">>) -> !i
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %rows) {bytes = 16 : i32, cache = "cg"} : (memref<?xf16, strided<[1]>>, !b, i1, tensor<16x64xi1, #ld>, !i) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 2 : i32}
  return
}
