// Atomics are text with order and scope spelled: red where nobody asks for the old value.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 1 --split-input-file | filecheck %s

!m = memref<?xf32, strided<[1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!b = tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// CHECK-LABEL: llvm.func @add
func.func @add(%x: !m) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !b
  %v = arith.constant dense<1.0> : !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  // CHECK: "@$2 red.relaxed.gpu.global.add.f32 [$0], $1;"
  %a = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i) -> !t
  // An acquire needs a value to acquire with.
  // CHECK: "@$4 atom.acquire.cluster.global.add.f32 $0, [$1], $2;"
  %b = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "addf", options = {}, order = "acquire", scope = "cluster"} : (!t, !m, !b, !i) -> !t
  // CHECK: "@$4 atom.relaxed.sys.global.add.f32 $0, [$1], $2;", "=r,l,r,0,b,~{memory}"
  %c = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "addf", options = {}, order = "relaxed", scope = "sys"} : (!t, !m, !b, !i) -> !t
  "tile.scatter"(%c, %x, %ok, %i) {options = {}} : (!t, !m, !b, !i) -> ()
  return
}

// -----
!m = memref<?xf32, strided<[1]>>
!t = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!b = tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// The maximum of floats is that of integers, by the sign of the value.
// CHECK-LABEL: llvm.func @maximum
func.func @maximum(%x: !m) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !b
  %v = arith.constant dense<1.0> : !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  // CHECK: red.relaxed.gpu.global.max.s32
  // CHECK: red.relaxed.gpu.global.min.u32
  %a = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "maxf", options = {}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i) -> !t
  return
}

// -----
!m = memref<?xf16, strided<[1]>>
!t = tensor<32xf16, #gpu_tile.layout<"T(32):(1@0) V():()">>
!b = tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// 16 bits have no exchange: a loop, whose every swap has the order asked for.
// CHECK-LABEL: llvm.func @loop
func.func @loop(%x: !m) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !b
  %v = arith.constant dense<1.0> : !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  // CHECK: scf.if
  // CHECK: ld.relaxed.gpu.global.b16
  // CHECK: scf.while
  // CHECK: atom.acq_rel.gpu.global.cas.b16
  %a = "tile.atomic_rmw"(%v, %x, %ok, %i) {kind = "exchange", options = {}, order = "acq_rel", scope = "gpu"} : (!t, !m, !b, !i) -> !t
  return
}

// -----
// Neighbours in memory and in registers are added by one instruction where nobody asks for the old
// values, all stay inside the array or none, and the type has vectors.
!m = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<8x16xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@1)">>
!b = tensor<8x16xi1, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@1)">>
!i = tensor<8x16xi32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@1)">>

// CHECK-LABEL: llvm.func @neighbours
func.func @neighbours(%x: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                      %y: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !b
  %v = arith.constant dense<1.0> : !t
  %row = "tile.iota"() {axis = 0 : i32} : () -> tensor<8xi32, #gpu_tile.layout<"T(4,8):(0,1@0) V():()">>
  %column = "tile.iota"() {axis = 0 : i32} : () -> tensor<16xi32, #gpu_tile.layout<"T(4,8):(2@0,0) V(2,2):(1@0,8@0)">>
  %i = "tile.broadcast"(%row) {dims = array<i32: 0>} : (tensor<8xi32, #gpu_tile.layout<"T(4,8):(0,1@0) V():()">>) -> !i
  %j = "tile.broadcast"(%column) {dims = array<i32: 1>} : (tensor<16xi32, #gpu_tile.layout<"T(4,8):(2@0,0) V(2,2):(1@0,8@0)">>) -> !i
  // CHECK-COUNT-2: "@$3 red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};"
  %a = "tile.atomic_rmw"(%v, %x, %ok, %i, %j) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  // CHECK-COUNT-4: "@$2 red.relaxed.gpu.global.add.f32 [$0], $1;"
  %b = "tile.atomic_rmw"(%v, %y, %ok, %i, %j) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  // CHECK-COUNT-4: "@$4 atom.relaxed.gpu.global.add.f32 $0, [$1], $2;"
  %c = "tile.atomic_rmw"(%v, %x, %ok, %i, %j) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  "tile.scatter"(%c, %x, %ok, %i, %j) {options = {}} : (!t, !m, !b, !i, !i) -> ()
  return
}

// -----
// Of 16 bits pairs are all that the hardware adds, in vectors of up to 16 bytes. Where the neighbours are says the
// option: these indices do not.
!m = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<8x16xf16, #gpu_tile.layout<"T(2,8):(8@1,1@0) V(8):(1@1)">>
!b = tensor<8x16xi1, #gpu_tile.layout<"T(2,8):(8@1,1@0) V(8):(1@1)">>
!i = tensor<8x16xi32, #gpu_tile.layout<"T(2,8):(8@1,1@0) V(8):(1@1)">>

// CHECK-LABEL: llvm.func @pairs
func.func @pairs(%x: !m, %places: memref<?x?xi32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %ok = arith.constant dense<true> : !b
  %v = arith.constant dense<1.0> : !t
  %i = "tile.load"(%places, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i32, options = {}} : (memref<?x?xi32, strided<[?, 1]>>, index, index) -> !i
  // CHECK: "@$5 red.relaxed.gpu.global.add.noftz.v4.f16x2 [$0], {$1, $2, $3, $4};"
  %a = "tile.atomic_rmw"(%v, %x, %ok, %i, %i) {kind = "addf", options = {run = array<i32: 1, 8>}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  // CHECK-COUNT-4: "@$2 red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;"
  %b = "tile.atomic_rmw"(%v, %x, %ok, %i, %i) {kind = "addf", options = {run = array<i32: 1, 2>}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  // An acquire is the fence behind, since a thread has several, and wants something that reads.
  // CHECK: "@$13 atom.relaxed.gpu.global.add.noftz.v4.f16x2 {$0, $1, $2, $3}, [$4], {$5, $6, $7, $8};"
  // CHECK: fence.acq_rel.gpu;
  %d = "tile.atomic_rmw"(%v, %x, %ok, %i, %i) {kind = "addf", options = {run = array<i32: 1, 8>}, order = "acquire", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  // CHECK-COUNT-8: "@$4 atom.relaxed.gpu.global.add.noftz.f16 $0, [$1], $2;"
  %c = "tile.atomic_rmw"(%v, %x, %ok, %i, %i) {kind = "addf", options = {run = array<i32: 1, 8>}, order = "relaxed", scope = "gpu"} : (!t, !m, !b, !i, !i) -> !t
  "tile.scatter"(%c, %x, %ok, %i, %i) {options = {}} : (!t, !m, !b, !i, !i) -> ()
  return
}
