// What is rounded and becomes an integer is so by one conversion, bounds that are integers in front.
// RUN: tilec opt %s --passes convert-floats --target sm_90a | filecheck %s

// CHECK-LABEL: llvm.func @bounded
llvm.func @bounded(%x: f32) -> i8 {
  %low = arith.constant -127.0 : f32
  %high = arith.constant 127.0 : f32
  // CHECK-NOT: roundeven
  // CHECK: %[[L:.*]] = arith.maximumf %arg0, %{{.*}} : f32
  // CHECK-NEXT: %[[H:.*]] = arith.minimumf %[[L]], %{{.*}} : f32
  // CHECK-NEXT: %[[W:.*]] = llvm.call_intrinsic "llvm.nvvm.f2i.rn"(%[[H]]) {{.*}} -> i32
  // CHECK-NEXT: %[[I:.*]] = arith.trunci %[[W]] : i32 to i8
  // CHECK-NEXT: llvm.return %[[I]]
  %0 = llvm.intr.roundeven(%x) : (f32) -> f32
  %1 = arith.maximumf %0, %low : f32
  %2 = arith.minimumf %1, %high : f32
  %3 = arith.fptosi %2 : f32 to i8
  llvm.return %3 : i8
}

// CHECK-LABEL: llvm.func @words
llvm.func @words(%x: f32, %y: f32) -> i32 {
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.f2i.rm"(%arg0)
  %0 = llvm.intr.floor(%x) : (f32) -> f32
  %1 = arith.fptosi %0 : f32 to i32
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.f2ui.rp"(%arg1)
  %2 = llvm.intr.ceil(%y) : (f32) -> f32
  %3 = arith.fptoui %2 : f32 to i32
  %4 = arith.addi %1, %3 : i32
  llvm.return %4 : i32
}

// Not where fewer bits do not hold all, bounds are no integers, or someone has the rounded number.
// CHECK-LABEL: llvm.func @kept
// CHECK-NOT: llvm.nvvm.f2
// CHECK: llvm.return
llvm.func @kept(%x: f32, %p: !llvm.ptr) -> i8 {
  %low = arith.constant -127.0 : f32
  %high = arith.constant 128.0 : f32
  %between = arith.constant 63.5 : f32
  %0 = llvm.intr.roundeven(%x) : (f32) -> f32
  %1 = arith.maximumf %0, %low : f32
  %2 = arith.minimumf %1, %high : f32
  %3 = arith.fptosi %2 : f32 to i8
  %4 = llvm.intr.floor(%x) : (f32) -> f32
  %5 = arith.maximumf %4, %low : f32
  %6 = arith.minimumf %5, %between : f32
  %7 = arith.fptosi %6 : f32 to i8
  %8 = llvm.intr.ceil(%x) : (f32) -> f32
  llvm.store %8, %p : f32, !llvm.ptr
  %9 = arith.maximumf %8, %low : f32
  %10 = arith.fptosi %9 : f32 to i32
  %11 = arith.trunci %10 : i32 to i8
  %12 = arith.addi %3, %7 : i8
  %13 = arith.addi %11, %12 : i8
  llvm.return %13 : i8
}
