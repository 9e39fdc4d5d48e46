// arith.remf is exact however large the quotient is, by a loop; with afn it is three operations.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK: llvm.func internal @__tilec_remf_f32_f32_afn
// CHECK-NOT: scf.while
// CHECK: llvm.return
// CHECK: llvm.func internal @__tilec_remf_f32_f32(
// CHECK: scf.while
// CHECK: llvm.func @remainders
llvm.func @remainders(%x: f32, %y: f32) -> f32 {
  // CHECK-NEXT: llvm.call @__tilec_remf_f32_f32(
  %0 = arith.remf %x, %y : f32
  // CHECK-NEXT: llvm.call @__tilec_remf_f32_f32_afn(
  %1 = arith.remf %0, %y fastmath<afn> : f32
  llvm.return %1 : f32
}
