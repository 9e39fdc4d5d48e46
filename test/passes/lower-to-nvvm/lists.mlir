// A row of the table has an array's pointer, and the sizes and strides that only the launch knows.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!t = tensor<f32, #gpu_tile.layout<"T(32):(0) V():()">>
!a = memref<?x7xf32, strided<[?, 1]>>
!l = memref<?x!a>
!r = memref<?xmemref<?xf32, strided<[1]>>>

// CHECK-LABEL: llvm.func @row(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1> {llvm.align = 8 : i64}, %[[COUNT:[a-z0-9]+]]: i64, %[[AT:[a-z0-9]+]]: i64
// CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[AT]], %[[COUNT]] : i64
// CHECK: %[[ROW:.*]] = arith.select %[[THERE]], %[[AT]], %{{.*}} : i64
// CHECK: %[[WORD:.*]] = arith.muli %[[ROW]], %{{.*}} : i64
// CHECK: llvm.getelementptr %[[TABLE]][%[[WORD]]]
// CHECK: %[[POINTER:.*]] = llvm.load %{{.*}} invariant {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK: llvm.load %{{.*}} invariant
// CHECK: llvm.load %{{.*}} invariant
// CHECK-NOT: llvm.load %{{.*}} invariant
// CHECK: llvm.inttoptr %[[POINTER]] : i64 to !llvm.ptr<1>
func.func @row(%xs: !l, %i: index) attributes {tile.kernel} {
  %x = "tile.array_at"(%xs, %i) {options = {}} : (!l, index) -> !a
  %v = "tile.load"(%x, %i, %i) {dims = array<i32>, padding = 0.0 : f32, options = {}} : (!a, index, index) -> !t
  "tile.store"(%v, %x, %i, %i) {dims = array<i32>, options = {}} : (!t, !a, index, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @part(
// CHECK: scf.while
// CHECK: scf.condition
// CHECK: llvm.load %{{.*}} invariant
// CHECK: arith.divui
// CHECK: scf.yield
// CHECK-NOT: arith.select
// CHECK: llvm.inttoptr
func.func @part(%xs: !r, %pid: index) attributes {tile.kernel} {
  %i, %start = "tile.find_part"(%xs, %pid) {elements = 100 : i32} : (!r, index) -> (index, index)
  %x = "tile.array_at"(%xs, %i) {options = {inside = true}} : (!r, index) -> memref<?xf32, strided<[1]>>
  %v = "tile.load"(%x, %start) {dims = array<i32>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> !t
  "tile.store"(%v, %x, %start) {dims = array<i32>, options = {}} : (!t, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
