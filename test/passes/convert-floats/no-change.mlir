// Conversions between the wider floats are left to LLVM.
// RUN: tilec opt %s --passes convert-floats --target sm_80 | filecheck %s

// CHECK-LABEL: llvm.func @kept
llvm.func @kept(%x: f32, %y: f64) -> f32 {
  // CHECK-NEXT: arith.truncf {{.*}} : f32 to bf16
  %0 = arith.truncf %x : f32 to bf16
  // CHECK-NEXT: arith.truncf {{.*}} : f64 to f16
  %1 = arith.truncf %y : f64 to f16
  // CHECK-NEXT: arith.extf {{.*}} : bf16 to f32
  %2 = arith.extf %0 : bf16 to f32
  llvm.return %2 : f32
}
