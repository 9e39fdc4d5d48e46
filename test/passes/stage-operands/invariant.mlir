// An operand from outside a loop is stored once, in front of it.
// RUN: tilec opt %s --passes stage-operands --target sm_80 --num-warps 4 | filecheck %s

#acc = #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,32@1) V(2,2,4):(1@1,8@0,8@1)">
#l = #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8):(1@1)">
#r = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,2):(1@1,16@0)">

// CHECK-LABEL: @lhs_from_outside
func.func @lhs_from_outside(%m: memref<?x?xf16, strided<[?, 1]>>, %n: index, %a: tensor<32x32xf16, #l>, %c: tensor<32x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: gpu_tile.alloc
  // CHECK-NEXT: "gpu_tile.buffer_store"
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: scf.for
  // CHECK: tile.load
  // CHECK: gpu_tile.alloc
  // CHECK-NEXT: "gpu_tile.buffer_store"
  // CHECK-NOT: gpu_tile.buffer_store
  scf.for %i = %c0 to %n step %c1 {
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%s = %c) -> (tensor<32x64xf32, #acc>) {
      %b = "tile.load"(%m, %i, %j) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<32x64xf16, #r>
      %d = "tile.dot"(%a, %b, %s) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<32x32xf16, #l>, tensor<32x64xf16, #r>, tensor<32x64xf32, #acc>) -> tensor<32x64xf32, #acc>
      scf.yield %d : tensor<32x64xf32, #acc>
    }
  }
  return
}
