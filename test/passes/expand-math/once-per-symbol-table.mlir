// A formula is a function, made once for an op, its types and its flags in each symbol table.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-COUNT-1: llvm.func internal @__tilec_tanh_f32(
// CHECK-NOT: llvm.func internal @__tilec_tanh_f32(
// CHECK: llvm.func @two
llvm.func @two(%x: f32) -> f32 {
  // CHECK: llvm.call @__tilec_tanh_f32
  // CHECK: llvm.call @__tilec_tanh_f32
  %0 = math.tanh %x : f32
  %1 = math.tanh %0 : f32
  llvm.return %1 : f32
}
llvm.func @another(%x: f32) -> f32 {
  // CHECK: llvm.call @__tilec_tanh_f32
  %0 = math.tanh %x : f32
  llvm.return %0 : f32
}

// CHECK: gpu.module @inner
gpu.module @inner {
  // CHECK: llvm.func internal @__tilec_tanh_f32(
  // CHECK: llvm.func @inside
  llvm.func @inside(%x: f32) -> f32 {
    // CHECK: llvm.call @__tilec_tanh_f32
    %0 = math.tanh %x : f32
    llvm.return %0 : f32
  }
}
