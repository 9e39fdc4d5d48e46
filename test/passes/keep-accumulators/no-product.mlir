// A loop that only carries what lies in tensor memory: nothing adds to it.
// RUN: tilec opt %s --passes keep-accumulators --target sm_100a --num-warps 4 | filecheck %s

!o = memref<?x?xf32, strided<[?, 1]>>
!sum = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>
!rows = tensor<128x128xf32, #gpu_tile.layout<"T(32,4):(1@0,32@0) V(128):(1@1)">>

// CHECK-LABEL: @no_product
// CHECK: scf.for {{.*}} -> (tensor<128x128xf32
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[T:.*]]) : {{.*}}tmem
// CHECK: "gpu_tile.buffer_load"(%[[T]])
// CHECK: scf.yield
func.func @no_product(%n: index, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !rows
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %zero) -> (!rows) {
    %t = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.buffer_store"(%acc, %t) : (!rows, !sum) -> ()
    %again = "gpu_tile.buffer_load"(%t) : (!sum) -> !rows
    scf.yield %again : !rows
  }
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!rows, !o, index, index) -> ()
  return
}
