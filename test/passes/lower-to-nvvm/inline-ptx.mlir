// Text runs per register; narrow integers travel in 16 bits, an index in what the letter says.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!f = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!h = tensor<64xf16, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!x = tensor<37xindex, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>

// CHECK-LABEL: llvm.func @k(
func.func @k() attributes {tile.kernel} {
  %f = arith.constant dense<1.0> : !f
  %h = arith.constant dense<1.0> : !h
  %i = "tile.iota"() {axis = 0 : i32} : () -> !x
  // CHECK-COUNT-2: llvm.inline_asm "ex2.approx.f32 $0, $1;", "=f,f" %{{.*}} : (f32) -> f32
  %y = "tile.inline_ptx"(%f) {text = "ex2.approx.f32 $0, $1;", constraints = "=f,f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!f) -> !f
  // CHECK: arith.bitcast %{{.*}} : f16 to i16
  // CHECK: llvm.inline_asm "neg.f16 $0, $1;", "=h,h" %{{.*}} : (i16) -> i16
  %z = "tile.inline_ptx"(%h) {text = "neg.f16 $0, $1;", constraints = "=h,h", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
  // Effects leave phantoms out.
  // CHECK: arith.trunci %{{.*}} : i64 to i32
  // CHECK: llvm.inline_asm has_side_effects "prefetchu.L1 [$0];", "r,~{memory}" %{{.*}} : (i32) -> ()
  // CHECK: scf.if
  // CHECK: llvm.inline_asm has_side_effects "prefetchu.L1 [$0];"
  "tile.inline_ptx"(%i) {text = "prefetchu.L1 [$0];", constraints = "r", pure = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : (!x) -> ()
  return
}
