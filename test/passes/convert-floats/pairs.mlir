// Conversions side by side share one instruction, first operand in the lower byte.
// RUN: tilec opt %s --passes convert-floats --target sm_90a | filecheck %s

// CHECK-LABEL: llvm.func @narrow
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32)
llvm.func @narrow(%x: f32, %y: f32) -> i8 {
  // CHECK: %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[Y]], %[[X]])
  // CHECK: %[[LOW:.*]] = arith.trunci %[[P]] : i16 to i8
  // CHECK: %[[UPPER:.*]] = arith.shrui %[[P]]
  // CHECK: %[[HIGH:.*]] = arith.trunci %[[UPPER]] : i16 to i8
  // CHECK-NOT: llvm.call_intrinsic
  // CHECK: arith.addi %[[LOW]], %[[HIGH]]
  %0 = arith.truncf %x : f32 to f8E4M3FN
  %1 = arith.truncf %y : f32 to f8E4M3FN
  %2 = arith.bitcast %0 : f8E4M3FN to i8
  %3 = arith.bitcast %1 : f8E4M3FN to i8
  %4 = arith.addi %2, %3 : i8
  llvm.return %4 : i8
}

// CHECK-LABEL: llvm.func @widen
llvm.func @widen(%i: i8, %j: i8) -> f32 {
  // CHECK-COUNT-1: "llvm.nvvm.e5m2x2.to.f16x2.rn"
  // CHECK-NOT: llvm.call_intrinsic
  // CHECK-COUNT-2: arith.extf {{.*}} : f16 to f32
  %x = arith.bitcast %i : i8 to f8E5M2
  %y = arith.bitcast %j : i8 to f8E5M2
  %0 = arith.extf %x : f8E5M2 to f32
  %1 = arith.extf %y : f8E5M2 to f32
  %2 = arith.addf %0, %1 : f32
  llvm.return %2 : f32
}

// The second operand depends on the first result: two instructions.
// CHECK-LABEL: llvm.func @chain
llvm.func @chain(%x: f32) -> i8 {
  // CHECK: "llvm.nvvm.ff.to.e4m3x2.rn"
  // CHECK: arith.uitofp
  // CHECK: "llvm.nvvm.ff.to.e4m3x2.rn"
  %0 = arith.truncf %x : f32 to f8E4M3FN
  %1 = arith.bitcast %0 : f8E4M3FN to i8
  %2 = arith.uitofp %1 : i8 to f32
  %3 = arith.truncf %2 : f32 to f8E4M3FN
  %4 = arith.bitcast %3 : f8E4M3FN to i8
  llvm.return %4 : i8
}
