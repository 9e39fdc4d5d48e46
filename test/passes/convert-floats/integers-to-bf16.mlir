// Integers wider than the f32 mantissa become bf16 with one rounding on every target.
// RUN: tilec opt %s --passes convert-floats --target sm_80 | filecheck %s
// RUN: tilec opt %s --passes convert-floats --target sm_90a | filecheck %s --check-prefix NATIVE

// CHECK-LABEL: llvm.func @wide
// NATIVE-LABEL: llvm.func @wide
llvm.func @wide(%i: i32, %j: i64) -> bf16 {
  // CHECK: "llvm.nvvm.i2f.rz"
  // CHECK: arith.ori
  // CHECK: arith.truncf {{.*}} : f32 to bf16
  // NATIVE-NEXT: arith.sitofp {{.*}} : i32 to bf16
  %0 = arith.sitofp %i : i32 to bf16
  // CHECK: "llvm.nvvm.ull2f.rz"
  // NATIVE-NEXT: arith.uitofp {{.*}} : i64 to bf16
  %1 = arith.uitofp %j : i64 to bf16
  llvm.return %1 : bf16
}

// CHECK-LABEL: llvm.func @narrow
llvm.func @narrow(%i: i16) -> bf16 {
  // CHECK-NEXT: arith.sitofp {{.*}} : i16 to bf16
  %0 = arith.sitofp %i : i16 to bf16
  llvm.return %0 : bf16
}
