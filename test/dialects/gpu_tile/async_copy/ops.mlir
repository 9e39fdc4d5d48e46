// Asynchronous copies, printed as they were read.
// RUN: %roundtrip

!rows = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"(16,32):(40,1)">>

// CHECK-LABEL: @copy_commit_wait
func.func @copy_commit_wait(%a: memref<?x?x?xf16, strided<[?, ?, 1]>>, %s: !rows, %yes: i1, %i: index) {
  // CHECK: "gpu_tile.cp_async"(%{{.*}}) {bytes = 16 : i32, cache = "cg", dims = array<i32: 1, 2>} : (memref<?x?x?xf16, strided<[?, ?, 1]>>, !gpu_tile.buffer<{{.*}}>, i1, index, index, index) -> ()
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i, %i) {dims = array<i32: 1, 2>, bytes = 16 : i32, cache = "cg"} : (memref<?x?x?xf16, strided<[?, ?, 1]>>, !rows, i1, index, index, index) -> ()
  // CHECK: bytes = 4 : i32, cache = "ca"
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %i, %i) {dims = array<i32: 0, 2>, bytes = 4 : i32, cache = "ca"} : (memref<?x?x?xf16, strided<[?, ?, 1]>>, !rows, i1, index, index, index) -> ()
  // CHECK: "gpu_tile.cp_async_commit"() : () -> ()
  "gpu_tile.cp_async_commit"() : () -> ()
  // CHECK: "gpu_tile.cp_async_wait"() {pending = 2 : i32} : () -> ()
  "gpu_tile.cp_async_wait"() {pending = 2 : i32} : () -> ()
  return
}
