// sin reduces small arguments without a branch and large ones inside an scf.if.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK: llvm.func internal @__tilec_sin_f32
// CHECK-COUNT-3: llvm.intr.fma
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt
// CHECK: scf.if %[[LARGE]] -> (f32, i32)
// CHECK: llvm.intr.fshl
// CHECK: scf.yield
// CHECK-LABEL: llvm.func @both
llvm.func @both(%x: f32) -> f32 {
  // CHECK: llvm.call @__tilec_sin_f32
  // CHECK: llvm.call @__tilec_cos_f32
  %s, %c = math.sincos %x : f32
  %r = arith.addf %s, %c : f32
  llvm.return %r : f32
}
