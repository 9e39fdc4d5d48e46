// Gathers and scatters whose elements are neighbours in memory: noted, and layouts follow.
// RUN: tilec opt %s --passes infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!i = tensor<32x64xi32>

// Rows by number, columns from a multiple of eight on.
// CHECK-LABEL: @rows
// CHECK: "tile.gather"{{.*}} {options = {run = array<i32: 1, 8>}}
// CHECK-SAME: -> tensor<32x64xf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,2):(1@1,16@0)">>
// CHECK: "tile.scatter"{{.*}} {options = {run = array<i32: 1, 8>}}
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %numbers: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant dense<48> : !i
  %all = arith.constant dense<true> : tensor<32x64xi1>
  %zero = arith.constant dense<0.0> : tensor<32x64xf16>
  %n = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<32xi32>
  %r = "tile.broadcast"(%n) {dims = array<i32: 0>} : (tensor<32xi32>) -> !i
  %k = "tile.iota"() {axis = 1 : i32} : () -> !i
  %c = arith.addi %k, %c48 : !i
  %x = "tile.gather"(%a, %all, %zero, %r, %c) {options = {}} : (!m, tensor<32x64xi1>, tensor<32x64xf16>, !i, !i) -> tensor<32x64xf16>
  "tile.scatter"(%x, %a, %all, %r, %k) {options = {}} : (tensor<32x64xf16>, !m, tensor<32x64xi1>, !i, !i) -> ()
  return
}

// Rows that differ within a group of columns, and columns from 44 on: groups of four at most.
// CHECK-LABEL: @short
// CHECK: "tile.gather"{{.*}} {options = {run = array<i32: 1, 4>}}
// CHECK: "tile.scatter"{{.*}} {options = {}}
func.func @short(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c44 = arith.constant dense<44> : !i
  %all = arith.constant dense<true> : tensor<32x64xi1>
  %zero = arith.constant dense<0.0> : tensor<32x64xf16>
  %k = "tile.iota"() {axis = 1 : i32} : () -> !i
  %c = arith.addi %k, %c44 : !i
  %x = "tile.gather"(%a, %all, %zero, %c44, %c) {options = {}} : (!m, tensor<32x64xi1>, tensor<32x64xf16>, !i, !i) -> tensor<32x64xf16>
  "tile.scatter"(%x, %a, %all, %k, %k) {options = {}} : (tensor<32x64xf16>, !m, tensor<32x64xi1>, !i, !i) -> ()
  return
}
