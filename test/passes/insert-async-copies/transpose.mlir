// A transpose between load and buffer becomes the copy's order of dimensions.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
!tt = tensor<64x16xf16, #gpu_tile.layout<"T(8,16):(8@0,1@1) V(8):(1@0)">>
!bt = !gpu_tile.buffer<tensor<64x16xf16>, #gpu_tile.shared<"S<3,4,3> o (64,16):(1,64)">>
// CHECK-LABEL: @transposed
// CHECK: "gpu_tile.cp_async"{{.*}} {bytes = 16 : i32, cache = "cg", dims = array<i32: 1, 0>}
// CHECK-NOT: tile.transpose
func.func @transposed(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %p = "tile.transpose"(%t) {permutation = array<i32: 1, 0>} : (!t) -> !tt
    %s = "gpu_tile.alloc"() {options = {}} : () -> !bt
    "gpu_tile.buffer_store"(%p, %s) : (!tt, !bt) -> ()
  }
  return
}

// A tile and its transpose: a copy each, one group.
// CHECK-LABEL: @both
// CHECK-NOT: tile.load
// CHECK-DAG: "gpu_tile.cp_async"{{.*}} dims = array<i32: 1, 0>}
// CHECK-DAG: "gpu_tile.cp_async"{{.*}} dims = array<i32: 0, 1>}
// CHECK: gpu_tile.cp_async_commit
// CHECK-NOT: gpu_tile.cp_async_commit
func.func @both(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %p = "tile.transpose"(%t) {permutation = array<i32: 1, 0>} : (!t) -> !tt
    %x = "gpu_tile.alloc"() {options = {}} : () -> !bt
    "gpu_tile.buffer_store"(%p, %x) : (!tt, !bt) -> ()
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
