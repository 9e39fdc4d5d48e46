// Roles repeat branches: the count of a ring's turns goes through their results, in both roles alike.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!f = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// A guard around all: the load role has it, too. Without copies a branch leaves the count alone.
// CHECK-LABEL: @guarded
// CHECK: "gpu_tile.role"() ({
// CHECK: %[[RUNS:.*]] = arith.cmpi slt
// CHECK: scf.if %[[RUNS]]
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (i32) {
// CHECK: "gpu_tile.ring_acquire"(%{{.*}}, %[[N]])
// CHECK: "gpu_tile.tma_load"
// CHECK: name = "load"
// CHECK: "gpu_tile.role"() ({
// CHECK: %[[RUNS2:.*]] = arith.cmpi slt
// CHECK: scf.if %[[RUNS2]]
// CHECK: "gpu_tile.ring_wait"
// CHECK: "gpu_tile.ring_release"
// CHECK: "tile.store"
// CHECK: name = "compute"
func.func @guarded(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %runs = arith.cmpi slt, %c0, %rows : index
  scf.if %runs {
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  }
  return
}

// Blocks that are skipped are no turns; each role loads the flag that decides.
// CHECK-LABEL: @skips
// CHECK: "gpu_tile.role"() ({
// CHECK: scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (i32) {
// CHECK: "tile.load"(%arg2
// CHECK: %[[NEXT:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK: "gpu_tile.ring_acquire"(%{{.*}}, %[[N]])
// CHECK: "gpu_tile.tma_load"
// CHECK: %[[MORE:.*]] = arith.addi %[[N]]
// CHECK: scf.yield %[[MORE]] : i32
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[N]] : i32
// CHECK: scf.yield %[[NEXT]] : i32
// CHECK: name = "load"
// CHECK: "tile.load"(%arg2
// CHECK: scf.if
// CHECK: "gpu_tile.ring_wait"
// CHECK: "gpu_tile.ring_release"
// CHECK: } else {
// CHECK: name = "compute"
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
