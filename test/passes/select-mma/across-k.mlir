// An lhs of tf32 that is contiguous along m in memory comes to the threads by shared memory: the
// instruction's rows are those that they read 8 bytes at a time.
// RUN: tilec opt %s --passes select-mma --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x32xf32>
!b = tensor<32x64xf32>
!c = tensor<64x64xf32>

// CHECK-LABEL: @across
// CHECK: instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"
func.func @across(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %b: !m, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %k, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// The same by a transpose of the tile.
// CHECK-LABEL: @transposed
// CHECK: instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"
func.func @transposed(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %b: !m, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %t = "tile.load"(%a, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %ta = "tile.transpose"(%t) {permutation = array<i32: 1, 0>} : (!b) -> !a
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Along k, the instruction reads it from shared memory itself.
// CHECK-LABEL: @along
// CHECK: instruction = "wgmma.m64n64k8.f32.tf32.tf32"
func.func @along(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %b: !m, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// No tensor copy brings rows that begin anywhere: whoever loads them turns them, too.
// CHECK-LABEL: @anywhere
// CHECK: instruction = "wgmma.m64n64k8.f32.tf32.tf32"
func.func @anywhere(%a: !m, %b: !m, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %k, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}
