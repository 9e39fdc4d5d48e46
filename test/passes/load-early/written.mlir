// What a kernel writes is not settled.
// RUN: not tilec opt %s --passes load-early --target sm_90a 2>&1 | filecheck %s

// CHECK: error: settled: the kernel writes 'x'
func.func @k(%x: memref<?xi32, strided<[1]>> {tile.settled = true, tile.name = "x"}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1> : tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
  "tile.store"(%one, %x, %c0) {dims = array<i32>, options = {}} : (tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
