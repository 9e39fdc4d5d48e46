// Registers of a tile in panels under a swizzle: what threads and registers add to an address are
// different bits, so two sums a buffer serve all of them; further panels and rows are constants.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 | filecheck %s

!tile = tensor<128x16xf32, #gpu_tile.layout<"T(4,2,2,4,2):(1@1,2@0,16@0,4@0,32@0) V(2,4,2):(1@0,4@1,64@0)">>
!whole = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.shared<"S<3,4,3> o ((32,4),32):((1,1024),32)">>
!half = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.shared<"S<3,4,3> o ((32,4),32):((1,1024),32)">>

// CHECK-LABEL: @fragments
// CHECK: %[[T:.*]] = arith.xori
// CHECK: %[[X0:.*]] = arith.xori %[[T]], %c0_i32
// CHECK: %[[S0:.*]] = arith.addi %{{.*}}, %[[X0]]
// CHECK: llvm.getelementptr %{{.*}}[%[[S0]]]
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%c2048_i32]
// CHECK-NEXT: llvm.load {{.*}}{alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: %[[X1:.*]] = arith.xori %[[T]], %c576_i32
// CHECK: %[[S1:.*]] = arith.addi %{{.*}}, %[[X1]]
// CHECK: llvm.getelementptr %{{.*}}[%[[S1]]]
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%c2048_i32]
// CHECK-NOT: arith.xori
// CHECK: llvm.getelementptr %{{.*}}[%[[S0]]]
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%c3072_i32]
// CHECK: llvm.getelementptr %{{.*}}[%[[S1]]]
// CHECK-NEXT: llvm.getelementptr %{{.*}}[%c3072_i32]
// CHECK: llvm.getelementptr %{{.*}}[%c10240_i32]
// CHECK-NOT: arith.xori
// CHECK: return
func.func @fragments(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.shared_bytes = 16384 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %buffer = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !whole
  %view = "gpu_tile.view"(%buffer, %c0, %c16) : (!whole, i32, i32) -> !half
  %a = "gpu_tile.buffer_load"(%view) : (!half) -> !tile
  return
}
