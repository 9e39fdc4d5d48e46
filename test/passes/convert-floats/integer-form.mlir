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

// E5M2 is the upper half of f16.
// CHECK-LABEL: llvm.func @widen
llvm.func @widen(%i: i8) -> f16 {
  // CHECK: %[[W:.*]] = arith.shli {{.*}}, %c8_i32
  // CHECK-NEXT: %[[P:.*]] = llvm.bitcast %[[W]] : i32 to vector<2xf16>
  // CHECK: %[[H:.*]] = llvm.extractelement %[[P]][%c0_i32
  // CHECK: llvm.return %[[H]]
  %x = arith.bitcast %i : i8 to f8E5M2
  %0 = arith.extf %x : f8E5M2 to f16
  llvm.return %0 : f16
}

// Two side by side share a word.
// CHECK-LABEL: llvm.func @widen_two
llvm.func @widen_two(%i: i8, %j: i8) -> (!llvm.struct<(f32, f32)>) {
  // CHECK-COUNT-1: arith.mulf {{.*}} : vector<2xf16>
  // CHECK-NOT: arith.mulf
  // CHECK-COUNT-2: arith.extf {{.*}} : f16 to f32
  %x = arith.bitcast %i : i8 to f8E4M3FN
  %y = arith.bitcast %j : i8 to f8E4M3FN
  %0 = arith.extf %x : f8E4M3FN to f32
  %1 = arith.extf %y : f8E4M3FN to f32
  %s = llvm.mlir.poison : !llvm.struct<(f32, f32)>
  %t = llvm.insertvalue %0, %s[0] : !llvm.struct<(f32, f32)>
  %u = llvm.insertvalue %1, %t[1] : !llvm.struct<(f32, f32)>
  llvm.return %u : !llvm.struct<(f32, f32)>
}
