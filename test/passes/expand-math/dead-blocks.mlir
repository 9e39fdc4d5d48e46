// Math in a block that nothing jumps to becomes arithmetic as elsewhere: MLIR cannot lower it.
// RUN: tilec opt %s --passes expand-math --target sm_80 | filecheck %s

// CHECK-LABEL: llvm.func @k
// CHECK-NOT:   math.exp
// CHECK:       llvm.return
// CHECK:       ^bb1:
// CHECK-NOT:   math.exp
// CHECK:       llvm.return
llvm.func @k(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  llvm.return %0 : f32
^bb1:
  %1 = math.exp %x : f32
  llvm.return %1 : f32
}
