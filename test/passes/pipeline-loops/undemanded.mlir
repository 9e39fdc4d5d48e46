// How many stages nobody asked for: what fits into half of a multiprocessor's shared memory.
// RUN: tilec opt %s --passes pipeline-loops --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<128x96xf16>, #gpu_tile.shared<"(128,96):(96,1)">>
!h = !gpu_tile.buffer<tensor<128x256xf16>, #gpu_tile.shared<"(128,256):(256,1)">>
// Three of 24 KiB fit into 81.5 KiB.
// CHECK-LABEL: @three
// CHECK: gpu_tile.buffer<tensor<3x128x96xf16>
func.func @three(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
  }
  return
}

// One of 64 KiB: as it was.
// CHECK-LABEL: @one
// CHECK: scf.for
// CHECK: gpu_tile.buffer<tensor<128x256xf16>
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @one(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !h
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !h, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
  }
  return
}
