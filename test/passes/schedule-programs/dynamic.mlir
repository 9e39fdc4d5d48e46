// A kernel whose CTAs will ask for programs gets the loop that all others get; request-programs
// rewrites it.
// RUN: tilec opt %s --passes schedule-programs --target sm_100a --num-warps 1 | filecheck %s

// CHECK-LABEL: @k
// CHECK-SAME: tile.persistent = "dynamic"
// CHECK: %[[FIRST:.*]] = "gpu_tile.cta_id"
// CHECK: %[[STEP:.*]] = "gpu_tile.num_ctas"
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK-NOT: tile.program_id
func.func @k(%a: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}
