// Programs of which a guard leaves some without work are not shared out in equal numbers.
// RUN: tilec opt %s --passes select-mma,infer-layouts,schedule-programs --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!f = memref<?xi32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @guarded
// CHECK-NOT: gpu_tile.cta_id
// CHECK: tile.program_id
func.func @guarded(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %id = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %id, %bk : index
  %runs = arith.cmpi slt, %m, %rows : index
  scf.if %runs {
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @no_trips
// CHECK-NOT: gpu_tile.cta_id
// CHECK: tile.program_id
func.func @no_trips(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %id = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %id, %bk : index
  %runs = arith.cmpi slt, %m, %rows : index
  %depth = arith.select %runs, %size, %c0 : index
  %acc = scf.for %k = %c0 to %depth step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Every program has a loop to run: of which kind, its place says.
// CHECK-LABEL: @either
// CHECK: gpu_tile.cta_id
// CHECK-NOT: tile.program_id
func.func @either(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                %keep: !f, %rows: index, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n0 = arith.constant 0 : i32
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %id = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %id, %bk : index
  %runs = arith.cmpi slt, %m, %rows : index
  %all = scf.if %runs -> (!c) {
    %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    scf.yield %acc : !c
  } else {
    %acc = scf.for %k = %c0 to %bk step %bk iter_args(%sum = %zero) -> (!c) {
      %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
      %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (!a, !a, !c) -> !c
      scf.yield %next : !c
    }
    scf.yield %acc : !c
  }
  "tile.store"(%all, %c, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
