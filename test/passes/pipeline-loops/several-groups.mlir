// Two groups at different places of a body fly as one; buffers become a ring each.
// RUN: tilec opt %s --passes pipeline-loops,canonicalize,cse --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @two_groups
// CHECK-COUNT-2: gpu_tile.buffer<tensor<2x16x64xf16>
// CHECK: gpu_tile.cp_async"
// CHECK-NEXT: gpu_tile.cp_async"
// CHECK-NEXT: gpu_tile.cp_async_commit
// CHECK: scf.for
// CHECK-NEXT: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK: gpu_tile.cp_async"
// CHECK-NEXT: gpu_tile.cp_async"
// CHECK-NEXT: gpu_tile.cp_async_commit
// CHECK-NOT: gpu_tile.cp_async_wait
// CHECK: gpu_tile.buffer_load
// CHECK-NOT: gpu_tile.cp_async_wait
// CHECK: scf.yield
func.func @two_groups(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %x, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %q = "gpu_tile.buffer_load"(%x) : (!b) -> !t
    "tile.store"(%q, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 2 : i32}
  return
}
