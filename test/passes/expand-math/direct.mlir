// Ops with an intrinsic that LLVM's NVPTX back end selects become that intrinsic.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-LABEL: llvm.func @floats
llvm.func @floats(%x: f32, %y: f32) -> f32 {
  // CHECK-NEXT: llvm.intr.fabs
  %0 = math.absf %x : f32
  // CHECK-NEXT: llvm.intr.floor
  %1 = math.floor %0 : f32
  // CHECK-NEXT: llvm.intr.ceil
  %2 = math.ceil %1 : f32
  // CHECK-NEXT: llvm.intr.round(
  %3 = math.round %2 : f32
  // CHECK-NEXT: llvm.intr.roundeven
  %4 = math.roundeven %3 : f32
  // CHECK-NEXT: llvm.intr.trunc
  %5 = math.trunc %4 : f32
  // CHECK-NEXT: llvm.intr.copysign
  %6 = math.copysign %5, %y : f32
  // CHECK-NEXT: llvm.intr.fma
  %7 = math.fma %6, %x, %y : f32
  // CHECK-NEXT: llvm.intr.sqrt
  %8 = math.sqrt %7 : f32
  // CHECK-NEXT: llvm.return
  llvm.return %8 : f32
}

// CHECK-LABEL: llvm.func @integers
llvm.func @integers(%i: i32) -> i32 {
  // CHECK-NEXT: "llvm.intr.abs"{{.*}}is_int_min_poison = false
  %0 = math.absi %i : i32
  // CHECK-NEXT: "llvm.intr.ctlz"{{.*}}is_zero_poison = false
  %1 = math.ctlz %0 : i32
  // CHECK-NEXT: "llvm.intr.cttz"{{.*}}is_zero_poison = false
  %2 = math.cttz %1 : i32
  // CHECK-NEXT: llvm.intr.ctpop
  %3 = math.ctpop %2 : i32
  llvm.return %3 : i32
}

// Vectors stay whole here.
// CHECK-LABEL: llvm.func @vectors
llvm.func @vectors(%x: vector<2xf16>) -> vector<2xf16> {
  // CHECK-NEXT: llvm.intr.fma({{.*}} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> vector<2xf16>
  %0 = math.fma %x, %x, %x : vector<2xf16>
  llvm.return %0 : vector<2xf16>
}
