// A wrapped row: whole vectors where its address is aligned, cut ones and others element by element.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 --split-input-file | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!x = tensor<512xf16, #gpu_tile.layout<"T(32):(8@0) V(8,2):(1@0,256@0)">>

// CHECK-LABEL: llvm.func @load(
func.func @load(%a: !m, %row: index, %from: index) attributes {tile.kernel} {
  // The address of the tile's first element, the same for all threads.
  // CHECK: %[[PLACE:.*]] = llvm.ptrtoint
  // CHECK: %[[LOW:.*]] = arith.andi %[[PLACE]], %c15
  // CHECK: %[[PAST:.*]] = arith.shrui %[[LOW]], %c1
  // CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[PAST]], %c0
  // CHECK: scf.if %[[ALIGNED]]
  // CHECK: arith.maxsi
  // CHECK-COUNT-2: "@$9 ld.global.v4.b32
  // CHECK: scf.if
  // The first of two vectors may have elements of the tile's end: these lie 512 further on.
  // CHECK: "mov.b64 $0, $1;"
  // CHECK: scf.if
  // CHECK: arith.cmpi slt
  // CHECK: arith.select {{.*}}%c512
  // CHECK-COUNT-8: "@$3 ld.global.b16
  // The second can only be cut.
  // CHECK: scf.if
  // CHECK-NOT: %c512
  // CHECK-COUNT-8: "@$3 ld.global.b16
  // Not aligned: all 16.
  // CHECK-COUNT-16: "@$3 ld.global.b16
  // CHECK-NOT: ld.global
  %x = "tile.load"(%a, %row, %from) {dims = array<i32: 1>, options = {wrapped = true}, padding = 0.0 : f16} : (!m, index, index) -> !x
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
!x = tensor<512xf16, #gpu_tile.layout<"T(32):(8@0) V(8,2):(1@0,256@0)">>

// CHECK-LABEL: llvm.func @store(
func.func @store(%a: !m, %x: f16, %row: index, %from: index) attributes {tile.kernel} {
  %v = tensor.splat %x : !x
  // CHECK: scf.if
  // CHECK-COUNT-2: "@$5 st.global.v4.b32
  // CHECK: scf.if
  // CHECK-COUNT-16: "@$2 st.global.b16
  // CHECK: else
  // CHECK-COUNT-16: "@$2 st.global.b16
  "tile.store"(%v, %a, %row, %from) {dims = array<i32: 1>, options = {wrapped = true}} : (!x, !m, index, index) -> ()
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>

// The misalignment of a row: of its address' low bits.
// CHECK-LABEL: llvm.func @misalignment(
func.func @misalignment(%a: !m, %row: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[AT:.*]] = llvm.ptrtoint
  // CHECK: %[[LOW:.*]] = arith.andi %[[AT]], %c31
  // CHECK: arith.shrui %[[LOW]], %c1
  %s = "tile.misalignment"(%a, %row, %c0) {bytes = 32 : i32} : (!m, index, index) -> index
  return
}
