// mma.sync with block scales: a register of four scales a row, which lanes and bytes an instruction reads of it.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_120a --num-warps 1 | filecheck %s

!a = tensor<32x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2,2):(1@1,8@0,16@1,16@0)">>
!b = tensor<32x16xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2,2):(1@0,16@0,8@1)">>
!c = tensor<32x16xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2,2):(1@1,8@0,16@0,8@1)">>
!s = tensor<32x4xi8, #gpu_tile.layout<"T(4,8):(8@0,1@0) V(4):(1@1)">>
!t = tensor<4x16xi8, #gpu_tile.layout<"T(2,2,8):(8@1,0,1@1) V(4):(1@0)">>

// Down one column and up the next: thread-id 0 and 1 of the lhs, then 1 and 0; byte-id 3 of all.
// CHECK-LABEL: llvm.func @selectors
// CHECK-DAG: %[[BYTE:.*]] = arith.constant 3 : i16
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i16
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i16
// CHECK: "llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e4m3.e5m2.f32.ue8m0"({{.*}}, %[[LEFT:[0-9]+]], %[[BYTE]], %[[ZERO]], %[[RIGHT:[0-9]+]], %[[BYTE]], %[[ZERO]])
// CHECK: "llvm.nvvm.mma.block.scale.{{.*}}({{.*}}, %[[LEFT]], %[[BYTE]], %[[ONE]], %[[RIGHT]], %[[BYTE]], %[[ZERO]])
// CHECK: "llvm.nvvm.mma.block.scale.{{.*}}({{.*}}, %[[LEFT]], %[[BYTE]], %[[ONE]], %[[RIGHT]], %[[BYTE]], %[[ONE]])
// CHECK: "llvm.nvvm.mma.block.scale.{{.*}}({{.*}}, %[[LEFT]], %[[BYTE]], %[[ZERO]], %[[RIGHT]], %[[BYTE]], %[[ONE]])
// CHECK-NOT: block.scale
func.func @selectors(%y: memref<?x?xf32>) attributes {tile.kernel} {
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c = arith.constant dense<0.0> : !c
  %s = arith.constant dense<127> : !s
  %t = arith.constant dense<126> : !t
  %0 = arith.constant 0 : index
  %d = "gpu_tile.mma_scaled"(%a, %b, %c, %s, %t) {block = 3 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (!a, !b, !c, !s, !t) -> !c
  "tile.store"(%d, %y, %0, %0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32>, index, index) -> ()
  return
}
