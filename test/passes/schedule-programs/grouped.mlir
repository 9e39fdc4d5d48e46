// A two-dimensional grid of dots in a loop: programs in groups of rows.
// RUN: tilec opt %s --passes schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!m = memref<?x?xf16, strided<[?, 1]>>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// CHECK-LABEL: @matmul
// CHECK: %[[X:.*]] = "tile.program_id"() {axis = 0 : i32}
// CHECK: %[[Y:.*]] = "tile.program_id"() {axis = 1 : i32}
// CHECK: %[[ROWS:.*]] = "tile.num_programs"() {axis = 0 : i32}
// CHECK: %[[R:.*]] = arith.index_cast %[[ROWS]]
// CHECK: %[[P:.*]] = arith.muli %{{.*}}, %[[R]] : i32
// CHECK: %[[LINEAR:.*]] = arith.addi %{{.*}}, %[[P]] : i32
// CHECK: %[[O:.*]]:2 = "gpu_tile.tile_order"(%[[LINEAR]], %[[R]], %{{.*}}) {group = 8 : i32, order = "grouped"}
// CHECK: %[[I:.*]] = arith.index_cast %[[O]]#0 : i32 to index
// CHECK: %[[J:.*]] = arith.index_cast %[[O]]#1 : i32 to index
// The author's ids are gone.
// CHECK-NOT: tile.program_id
// CHECK: arith.muli %[[I]], %[[J]] : index
func.func @matmul(%n: index, %x: !x, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %u = arith.muli %i, %j : index
  "tile.assume"(%u) {facts = {}} : (index) -> ()
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}

// The same with operands that come from memory, one for each row and one for each column.
// CHECK-LABEL: @loaded
// CHECK: "gpu_tile.tile_order"
func.func @loaded(%n: index, %a: !m, %b: !m, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %x = "tile.load"(%a, %i, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !x
    %y = "tile.load"(%b, %k, %j) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !y
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}

// Rows of a in groups: a search through the groups' ends chooses the matrix, so that neighbours mostly
// read the same one.
!b = memref<?x?x?xf16, strided<[?, ?, 1]>>
!e = memref<?xi32, strided<[1]>>
!one = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
// CHECK-LABEL: @chosen_by_data
// CHECK: "gpu_tile.tile_order"
func.func @chosen_by_data(%n: index, %a: !m, %b: !b, %ends: !e, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %end = "tile.load"(%ends, %c0) {dims = array<i32>, padding = 0 : i32, options = {}} : (!e, index) -> !one
  %stop = tensor.extract %end[] : !one
  %first = arith.index_cast %stop : i32 to index
  %behind = arith.cmpi sge, %i, %first : index
  %group = arith.select %behind, %c1, %c0 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %x = "tile.load"(%a, %i, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !x
    %y = "tile.load"(%b, %group, %k, %j) {dims = array<i32: 1, 2>, padding = 0.0 : f16, options = {}} : (!b, index, index, index) -> !y
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}
