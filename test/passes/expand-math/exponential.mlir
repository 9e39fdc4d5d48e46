// exp: exact to the type by default, the hardware's form with afn and for 16-bit types.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-LABEL: llvm.func internal @__tilec_exp_f32
// CHECK-SAME: always_inline
// CHECK: "llvm.nvvm.fma.rn.sat.f"
// CHECK: "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: arith.shli
// CHECK: llvm.return

// CHECK-LABEL: llvm.func @accurate
// CHECK-SAME: (%[[X:.*]]: f32)
llvm.func @accurate(%x: f32) -> f32 {
  // CHECK-NEXT: llvm.call @__tilec_exp_f32(%[[X]])
  // CHECK-NEXT: llvm.return
  %0 = math.exp %x : f32
  llvm.return %0 : f32
}

// CHECK-LABEL: llvm.func @approximate
// CHECK-SAME: (%[[X:.*]]: f32)
llvm.func @approximate(%x: f32) -> f32 {
  // CHECK: %[[LOG2E:.*]] = arith.constant 1.442695
  // CHECK: %[[M:.*]] = arith.mulf %[[X]], %[[LOG2E]]
  // CHECK: "llvm.nvvm.ex2.approx.ftz.f32"(%[[M]])
  %0 = math.exp %x fastmath<afn> : f32
  llvm.return %0 : f32
}

// CHECK-LABEL: llvm.func @half
llvm.func @half(%x: f16, %y: bf16) -> bf16 {
  // CHECK: arith.extf {{.*}} : f16 to f32
  // CHECK: "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: arith.truncf {{.*}} : f32 to f16
  %0 = math.exp %x : f16
  // bf16 has the denormals of f32, so they are not flushed.
  // CHECK: arith.extf {{.*}} : bf16 to f32
  // CHECK: "llvm.nvvm.ex2.approx.f32"
  // CHECK: arith.truncf {{.*}} : f32 to bf16
  %1 = math.exp %y : bf16
  llvm.return %1 : bf16
}
