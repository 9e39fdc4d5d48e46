// Asynchronous copies, printed as they were read.
// RUN: %roundtrip

!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!t = !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"(64,128):(1,64)">>

// CHECK-LABEL: @sixteen_bytes_past_l1
func.func @sixteen_bytes_past_l1(%a: !m, %s: !s, %yes: i1, %i: index, %j: index) {
  // CHECK: "gpu_tile.cp_async"(%{{.*}}) {bytes = 16 : i32, cache = "cg", dims = array<i32: 0, 1>}
  "gpu_tile.cp_async"(%a, %s, %yes, %i, %j) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, index, index) -> ()
  // CHECK: "gpu_tile.cp_async_commit"() : () -> ()
  "gpu_tile.cp_async_commit"() : () -> ()
  // CHECK: "gpu_tile.cp_async_wait"() {pending = 2 : i32} : () -> ()
  "gpu_tile.cp_async_wait"() {pending = 2 : i32} : () -> ()
  return
}

// CHECK-LABEL: @transposed_four_bytes
func.func @transposed_four_bytes(%a: !m, %t: !t, %yes: i1, %i: index, %j: index) {
  // CHECK: "gpu_tile.cp_async"(%{{.*}}) {bytes = 4 : i32, cache = "ca", dims = array<i32: 1, 0>}
  "gpu_tile.cp_async"(%a, %t, %yes, %i, %j) {dims = array<i32: 1, 0>, bytes = 4 : i32, cache = "ca"} : (!m, !t, i1, index, index) -> ()
  return
}

// CHECK-LABEL: @rows_by_number
func.func @rows_by_number(%a: !m, %s: !s, %yes: i1, %ok: tensor<128x64xi1>, %i: tensor<128x64xi32>, %j: tensor<128x64xi32>) {
  // CHECK: "gpu_tile.cp_async_gather"(%{{.*}}) {bytes = 16 : i32, cache = "cg"}
  "gpu_tile.cp_async_gather"(%a, %s, %yes, %ok, %i, %j) {bytes = 16 : i32, cache = "cg"} : (!m, !s, i1, tensor<128x64xi1>, tensor<128x64xi32>, tensor<128x64xi32>) -> ()
  return
}

// CHECK-LABEL: @arrive_when_copied
func.func @arrive_when_copied(%bar: !gpu_tile.barrier, %slot: i32) {
  // CHECK: "gpu_tile.cp_async_arrive"(%{{.*}}) : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.cp_async_arrive"(%bar, %slot) : (!gpu_tile.barrier, i32) -> ()
  return
}
