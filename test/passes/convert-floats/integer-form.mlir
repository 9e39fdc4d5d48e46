// Without the instruction 8-bit floats are made and read by integer arithmetic.
// RUN: tilec opt %s --passes convert-floats --target sm_80 | filecheck %s

// CHECK-LABEL: llvm.func @narrow
llvm.func @narrow(%x: f32) -> i8 {
  // CHECK-NOT: llvm.nvvm
  // CHECK: arith.bitcast {{.*}} : f32 to i32
  // CHECK: arith.trunci {{.*}} : i32 to i8
  %0 = arith.truncf %x : f32 to f8E4M3FN
  %1 = arith.bitcast %0 : f8E4M3FN to i8
  llvm.return %1 : i8
}

// f64 is first cut to an f32 that remembers what was cut, so that the result is rounded once.
// CHECK-LABEL: llvm.func @from_double
llvm.func @from_double(%x: f64) -> i8 {
  // CHECK: "llvm.nvvm.d2f.rz"
  // CHECK: arith.cmpf une
  // CHECK: arith.ori
  %0 = arith.truncf %x : f64 to f8E4M3FN
  %1 = arith.bitcast %0 : f8E4M3FN to i8
  llvm.return %1 : i8
}

// CHECK-LABEL: llvm.func @widen
llvm.func @widen(%i: i8) -> f16 {
  // E5M2 is the upper half of f16.
  // CHECK: %[[W:.*]] = arith.extui {{.*}} : i8 to i16
  // CHECK: %[[S:.*]] = arith.shli %[[W]]
  // CHECK-NEXT: %[[H:.*]] = arith.bitcast %[[S]] : i16 to f16
  // CHECK-NEXT: llvm.return %[[H]]
  %x = arith.bitcast %i : i8 to f8E5M2
  %0 = arith.extf %x : f8E5M2 to f16
  llvm.return %0 : f16
}
