// Grids that keep their order.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// CHECK-NOT: gpu_tile.tile_order
// One dimension: no tile shares both operands' neighbours.
func.func @one_dimension(%n: index, %x: !x, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 0 : i32} : () -> index
  %u = arith.muli %i, %j : index
  "tile.assume"(%u) {facts = {}} : (index) -> ()
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}

// The third axis is left alone.
func.func @second_and_third(%n: index, %x: !x, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 2 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %u = arith.muli %i, %j : index
  "tile.assume"(%u) {facts = {}} : (index) -> ()
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}

// A dot outside of loops reads its operands once.
func.func @no_loop(%n: index, %x: !x, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %u = arith.muli %i, %j : index
  "tile.assume"(%u) {facts = {}} : (index) -> ()
  %d = "gpu_tile.mma"(%x, %y, %z) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
  return
}


// Rows share what they multiply by, columns share nothing: each reads its own matrix.
!m = memref<?x?x?xf16, strided<[?, ?, 1]>>
func.func @shared_by_rows(%n: index, %a: !m, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %own = "tile.load"(%a, %j, %i, %c0) {dims = array<i32: 1, 2>, padding = 0.0 : f16, options = {}} : (!m, index, index, index) -> !x
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %x = "tile.load"(%a, %j, %k, %c0) {dims = array<i32: 1, 2>, padding = 0.0 : f16, options = {}} : (!m, index, index, index) -> !x
    %both = arith.addf %x, %own : !x
    %d = "gpu_tile.mma"(%both, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}

// Each program has a matrix of its own, whatever the table says of rows: numbers are no tiles.
!t = memref<?xi32, strided<[1]>>
!one = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @table(%n: index, %a: !m, %table: !t, %x: !x, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %found = "tile.load"(%table, %i) {dims = array<i32>, padding = 0 : i32, options = {}} : (!t, index) -> !one
  %number = tensor.extract %found[] : !one
  %page = arith.index_cast %number : i32 to index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %y = "tile.load"(%a, %page, %k, %j) {dims = array<i32: 1, 2>, padding = 0.0 : f16, options = {}} : (!m, index, index, index) -> !y
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}
