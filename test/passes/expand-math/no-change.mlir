// Ops LLVM selects well are left alone.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-LABEL: llvm.func @kept
llvm.func @kept(%x: f32, %y: bf16, %i: i32) -> f32 {
  // CHECK-NEXT: arith.maximumf
  %0 = arith.maximumf %x, %x : f32
  // CHECK-NEXT: arith.minnumf
  %1 = arith.minnumf %0, %x : f32
  // CHECK-NEXT: arith.remsi
  %2 = arith.remsi %i, %i : i32
  // CHECK-NEXT: arith.extf
  %3 = arith.extf %y : bf16 to f32
  // CHECK-NEXT: llvm.return
  llvm.return %1 : f32
}
