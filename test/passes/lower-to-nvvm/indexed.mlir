// Gathers and scatters are guarded per element; a scatter leaves copies and phantoms out.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 2 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!t = tensor<37xf32, #gpu_tile.layout<"T(32,2):(1@0,0) V(2):(32@0)">>
!b = tensor<37xi1, #gpu_tile.layout<"T(32,2):(1@0,0) V(2):(32@0)">>
!i = tensor<37xi32, #gpu_tile.layout<"T(32,2):(1@0,0) V(2):(32@0)">>

// CHECK-LABEL: llvm.func @k(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1>, %[[N:.*]]: i64
func.func @k(%x: !m) attributes {tile.kernel} {
  // The copy's bit of the thread number.
  // CHECK: %[[BIT:.*]] = arith.andi %{{.*}}, %c32_i32
  // CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[BIT]], %c0_i32
  %ok = arith.constant dense<true> : !b
  %zero = arith.constant dense<0.0> : !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  // CHECK: %[[AT:.*]] = arith.extsi %{{.*}} : i32 to i64
  // CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]], %[[N]] : i64
  // CHECK: llvm.inline_asm has_side_effects "@$3 ld.global.L1::no_allocate.b32 $0, [$2];"
  %v = "tile.gather"(%x, %ok, %zero, %i) {options = {cache = "no_allocate"}} : (!m, !b, !t, !i) -> !t
  // CHECK: %[[GUARD:.*]] = arith.andi %[[MINE]], %{{.*}} : i1
  // CHECK: llvm.inline_asm has_side_effects "@$2 st.global.b32 [$0], $1;"
  "tile.scatter"(%v, %x, %ok, %i) {options = {}} : (!t, !m, !b, !i) -> ()
  return
}
