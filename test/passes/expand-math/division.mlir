// Division: correctly rounded unless arcp asks for div.full, or afn for div.approx.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-LABEL: llvm.func @kept
llvm.func @kept(%x: f32, %y: f32, %d: f64) -> f32 {
  // CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} : f32
  %0 = arith.divf %x, %y : f32
  // f64 has no quick form, and LLVM is not told that a reciprocal would do.
  // CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} fastmath<contract> : f64
  %3 = arith.divf %d, %d fastmath<arcp, contract> : f64
  // CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} : f64
  %4 = arith.divf %d, %d fastmath<arcp> : f64
  // CHECK-NEXT: arith.divf %{{.*}}, %{{.*}} fastmath<afn> : f64
  %5 = arith.divf %d, %d fastmath<afn> : f64
  llvm.return %0 : f32
}

// CHECK-LABEL: llvm.func @full
llvm.func @full(%x: f32, %y: f32) -> f32 {
  // CHECK-NEXT: "llvm.nvvm.div.full"
  %0 = arith.divf %x, %y fastmath<arcp> : f32
  llvm.return %0 : f32
}

// CHECK-LABEL: llvm.func @approximate
llvm.func @approximate(%x: f32, %y: f32) -> f32 {
  // CHECK-NEXT: "llvm.nvvm.div.approx.ftz.f"
  %0 = arith.divf %x, %y fastmath<afn> : f32
  // CHECK-NEXT: "llvm.nvvm.div.approx.ftz.f"
  %1 = arith.divf %0, %y fastmath<fast> : f32
  %one = arith.constant 1.0 : f32
  // CHECK: "llvm.nvvm.rcp.approx.ftz.f"
  %2 = arith.divf %one, %1 fastmath<afn> : f32
  llvm.return %2 : f32
}

