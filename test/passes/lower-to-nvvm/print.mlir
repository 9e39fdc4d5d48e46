// One vprintf per register; its arguments lie in one buffer made at the kernel's start.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!t = tensor<37xi32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>

// CHECK: llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.mlir.global internal constant @[[TEXT:.*]]("(%lld, %lld, %lld) [%lld] 100%% %lld\0A\00")
// CHECK-LABEL: llvm.func @k(
func.func @k(%n: i32) attributes {tile.kernel} {
  // CHECK: llvm.alloca %{{.*}} x !llvm.array<5 x i64>
  // CHECK-NOT: llvm.alloca
  %i = "tile.iota"() {axis = 0 : i32} : () -> !t
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    // CHECK-COUNT-2: llvm.call @vprintf
    // CHECK-NOT: llvm.call
    "tile.print"(%i) {format = "100% {}", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!t) -> ()
  }
  return
}
