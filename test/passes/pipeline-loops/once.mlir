// A pipelined loop is left alone: a dumped program compiles from there on.
// RUN: tilec opt %s --passes pipeline-loops,pipeline-loops,insert-async-copies,pipeline-loops,canonicalize,cse --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
// CHECK-LABEL: @three_stages
// CHECK-COUNT-1: gpu_tile.alloc
// CHECK-NOT: gpu_tile.alloc
// CHECK: scf.for
// CHECK-SAME: -> (i32)
// CHECK: "gpu_tile.cp_async_wait"() {pending = 1 : i32}
// CHECK-NOT: gpu_tile.cp_async_wait
// CHECK: scf.yield
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
func.func @three_stages(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
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
  } {tile.stages = 3 : i32}
  return
}

