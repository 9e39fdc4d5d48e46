// Numbers by which a load role gathers rows are computed apart: no conversion of what both need.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s
// RUN: tilec opt %s --passes infer-layouts --target sm_80 --num-warps 4 | filecheck %s --check-prefix=ONCE

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xbf16>
!i = tensor<64x64xi32>
!c = tensor<64x64xf32>

// CHECK-LABEL: @both
// CHECK: arith.divsi {{.*}}#gpu_tile.layout<"T(8,16):(0,1@0) V(4):(16@0)">
// CHECK: arith.divsi {{.*}}#gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">
// CHECK-NOT: convert_layout{{.*}}xi32

// ONCE-LABEL: @both
// ONCE: arith.divsi
// ONCE-NOT: arith.divsi
func.func @both(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !a, %m: i32, %d: i32,
                %c: memref<?x?xf32, strided<[?, 1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %none = arith.constant dense<0.0> : !a
  %ok = arith.constant dense<true> : tensor<64x64xi1>
  %size = memref.dim %a, %c1 : !m
  %down = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %from = tensor.splat %m : tensor<64x1xi32>
  %by = tensor.splat %d : tensor<64x1xi32>
  %number = arith.addi %from, %down : tensor<64x1xi32>
  %half = arith.divsi %number, %by : tensor<64x1xi32>
  %row = "tile.broadcast"(%half) {dims = array<i32: 0, 1>} : (tensor<64x1xi32>) -> !i
  %along = "tile.iota"() {axis = 1 : i32} : () -> !i
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %k32 = arith.index_cast %k : index to i32
    %first = tensor.splat %k32 : !i
    %column = arith.addi %first, %along : !i
    %ta = "tile.gather"(%a, %ok, %none, %row, %column) {options = {}} : (!m, tensor<64x64xi1>, !a, !i, !i) -> !a
    %next = "tile.dot"(%ta, %b, %sum) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.scatter"(%acc, %c, %ok, %row, %along) {options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, tensor<64x64xi1>, !i, !i) -> ()
  return
}
