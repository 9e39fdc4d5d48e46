// Copies of blocks that some iterations skip stand in front of the branch, under its condition.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!f = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @skips
// CHECK: scf.for
// CHECK: %[[KEPT:.*]] = arith.cmpi sgt
// CHECK: "gpu_tile.cp_async"(%arg0, %[[A:.*]], %[[KEPT]], %c0, %{{.*}})
// CHECK: "gpu_tile.cp_async"(%arg1, %[[B:.*]], %[[KEPT]], %{{.*}}, %c0)
// CHECK-NEXT: "gpu_tile.cp_async_commit"()
// CHECK-NEXT: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NEXT: scf.if %[[KEPT]]
// CHECK-NOT: gpu_tile.cp_async
// CHECK: "gpu_tile.mma"
func.func @skips(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %one = "tile.load"(%keep, %k) {dims = array<i32>, padding = 0 : i32, options = {}} : (!f, index) -> tensor<i32>
    %flag = tensor.extract %one[] : tensor<i32>
    %kept = arith.cmpi sgt, %flag, %n0 : i32
    %got = scf.if %kept -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    } else {
      scf.yield %sum : !c
    }
    scf.yield %got : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// What the branch writes before is not read before it.
// CHECK-LABEL: @written
// CHECK: scf.for
// CHECK: scf.if
// CHECK: "tile.store"
// CHECK: "gpu_tile.cp_async"(%arg0, %{{.*}}, %true
func.func @written(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %x = arith.constant dense<0.0> : !a
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %one = "tile.load"(%keep, %k) {dims = array<i32>, padding = 0 : i32, options = {}} : (!f, index) -> tensor<i32>
    %flag = tensor.extract %one[] : tensor<i32>
    %kept = arith.cmpi sgt, %flag, %n0 : i32
    %got = scf.if %kept -> (!c) {
      "tile.store"(%x, %a, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!a, !m, index, index) -> ()
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    } else {
      scf.yield %sum : !c
    }
    scf.yield %got : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
