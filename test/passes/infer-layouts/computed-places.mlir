// Scattered places that are computed by a number that nobody knows: neighbours lie as near as they would by an unknown stride, so
// that neighbouring threads store them (pages of 8 elements); of places that memory says nothing is known, and the load decides.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!x = memref<?xbf16, strided<[1]>>
!n = memref<?xi32, strided<[1]>>
!t = tensor<1024xbf16>
!i = tensor<1024xi32>
!m = tensor<1024xi1>

// CHECK-LABEL: func.func @pages(
// CHECK: "tile.load"{{.*}} -> tensor<1024xbf16, #gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">>
func.func @pages(%x: !x {tile.facts = {align = 16 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}}, %out: !x, %page: i32, %apart: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : !m
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  %p = tensor.splat %page : !i
  %s = tensor.splat %apart : !i
  %q = arith.divsi %i, %p : !i
  %r = arith.remsi %i, %p : !i
  %a = arith.muli %q, %s : !i
  %at = arith.addi %a, %r : !i
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : bf16} : (!x, index) -> !t
  "tile.scatter"(%v, %out, %all, %at) {options = {}} : (!t, !x, !m, !i) -> ()
  return
}

// CHECK-LABEL: func.func @listed(
// CHECK: "tile.load"{{.*}} -> tensor<1024xbf16, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
func.func @listed(%x: !x {tile.facts = {align = 16 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}}, %numbers: !n {tile.facts = {align = 16 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}}, %out: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : !m
  %at = "tile.load"(%numbers, %c0) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (!n, index) -> !i
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : bf16} : (!x, index) -> !t
  "tile.scatter"(%v, %out, %all, %at) {options = {}} : (!t, !x, !m, !i) -> ()
  return
}
