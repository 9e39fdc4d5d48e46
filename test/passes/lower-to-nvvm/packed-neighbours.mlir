// Registers are paired as their words lie: what an author's text takes out of a word, as 4-bit numbers,
// are neighbours along columns, where a thread's next register is of the next row.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 1 | filecheck %s

!i = memref<?x?xi32, strided<[?, 1]>>
!h = memref<?x?x2xf16, strided<[?, 2, 1]>>
!w = tensor<2x32xi32, #gpu_tile.layout<"T(32):(1@1) V(2):(1@0)">>
!p = tensor<2x32xf16, #gpu_tile.layout<"T(32):(1@1) V(2):(1@0)">>
!o = tensor<2x32x1xf16, #gpu_tile.layout<"T(32):(1@1) V(2):(1@0)">>
!t = tensor<2x32x2xf16, #gpu_tile.layout<"T(32):(1@1) V(2,2):(1@0,1@2)">>

// CHECK-LABEL: llvm.func @text
// CHECK: %[[A:.*]] = llvm.inline_asm {{.*}}"mov.b32 {$0, $1}, $2;"
// CHECK: llvm.insertelement
// CHECK: %[[ONE:.*]] = llvm.insertelement
// CHECK: llvm.inline_asm {{.*}}"mov.b32 {$0, $1}, $2;"
// CHECK: llvm.insertelement
// CHECK: %[[TWO:.*]] = llvm.insertelement
// CHECK: arith.mulf %[[ONE]], %[[ONE]] : vector<2xf16>
// CHECK: arith.mulf %[[TWO]], %[[TWO]] : vector<2xf16>
// CHECK-NOT: arith.mulf
func.func @text(%x: !i, %y: !h) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i32, options = {}} : (!i, index, index) -> !w
  %lo, %hi = "tile.inline_ptx"(%a) {text = "mov.b32 {$0, $1}, $2;", constraints = "=h,=h,r", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (!w) -> (!p, !p)
  %l = "tile.reshape"(%lo) : (!p) -> !o
  %h = "tile.reshape"(%hi) : (!p) -> !o
  %j = "tile.join"(%l, %h) {axis = 2 : i32} : (!o, !o) -> !t
  %b = arith.mulf %j, %j : !t
  "tile.store"(%b, %y, %c0, %c0, %c0) {dims = array<i32: 0, 1, 2>, options = {}} : (!t, !h, index, index, index) -> ()
  return
}
