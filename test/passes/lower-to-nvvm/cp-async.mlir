// Copies say what of a vector is read: all, all or nothing, or at the array's end some bytes.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<8x32xf16>, #gpu_tile.shared<"S<2,4,3> o (8,32):(32,1)">>

// Rows are multiples of a vector: one predicate a vector, no branch.
// CHECK-LABEL: llvm.func @whole_vectors(
func.func @whole_vectors(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %k: index) attributes {tile.kernel} {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK-NOT: scf.if
  // CHECK: %[[OUTSIDE:[^ ]*]] = arith.xori %{{.*}}, %true
  // CHECK: "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,b,~{memory}" %{{[^,]*}}, %{{[^,]*}}, %[[OUTSIDE]]
  // CHECK-NOT: cp.async
  "gpu_tile.cp_async"(%a, %s, %true, %c0, %k) {bytes = 16 : i32, cache = "cg", dims = array<i32: 0, 1>} : (!m, !b, i1, index, index) -> ()
  // CHECK: llvm.return
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<8x32xf16>, #gpu_tile.shared<"S<2,4,3> o (8,32):(32,1)">>

// A row may end inside a vector: tiles wholly inside the array, of which the mask is one condition
// more, copy without any test.
// CHECK-LABEL: llvm.func @part_of_a_vector(
// CHECK-SAME: %[[ROWS:[^:,]*]]: i64, %[[COLUMNS:[^:,]*]]: i64, %{{[^:]*}}: i64, %[[FLAG:[^:]*]]: i8, %[[K:[^:]*]]: i64)
func.func @part_of_a_vector(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}, %mask: i1, %k: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK: %[[MASK:[^ ]*]] = arith.trunci %[[FLAG]]
  // CHECK: arith.cmpi ult, %{{.*}}, %[[ROWS]]
  // CHECK: %[[LEFT:[^ ]*]] = arith.subi %[[COLUMNS]], %[[K]]
  // CHECK: arith.cmpi ult, %[[K]], %[[COLUMNS]]
  // CHECK: arith.cmpi ule, %c32_i64, %[[LEFT]]
  // CHECK: %[[INSIDE:[^ ]*]] = arith.andi %[[MASK]], %
  // CHECK: scf.if %[[INSIDE]] {
  // CHECK-NEXT: "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}" %[[TO:[^,]*]], %[[FROM:[^ ]*]]
  // CHECK-NEXT: } else {
  // A loop that runs once, around which ptxas must branch.
  // CHECK: %[[CTAS:[^ ]*]] = nvvm.read.ptx.sreg.nctaid.x
  // CHECK: %[[ONCE:[^ ]*]] = arith.minui %[[CTAS]], %c1_i32
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[ONCE]] step %c1_i32
  // CHECK: %[[BYTES:[^ ]*]] = arith.muli %{{.*}}, %c2_i32
  // CHECK: %[[READ:[^ ]*]] = arith.select %{{.*}}, %[[BYTES]], %c0_i32
  // CHECK: "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}" %[[TO]], %[[FROM]], %[[READ]]
  "gpu_tile.cp_async"(%a, %s, %mask, %c0, %k) {bytes = 16 : i32, cache = "cg", dims = array<i32: 0, 1>} : (!m, !b, i1, index, index) -> ()
  return
}
