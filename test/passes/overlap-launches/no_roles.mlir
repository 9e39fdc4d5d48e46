// A kernel without roles waits behind all that leaves global memory alone, and lets the next launch in
// behind that, if it has few CTAs.
// RUN: tilec opt %s --passes overlap-launches --target sm_90a --split-input-file | filecheck %s

!t = tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>

// CHECK-LABEL: @copies
// CHECK: memref.dim
// CHECK: "tile.program_id"
// CHECK: "tile.iota"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK: %[[X:.*]] = "tile.num_programs"() {axis = 0 : i32}
// CHECK-NEXT: %[[Y:.*]] = "tile.num_programs"() {axis = 1 : i32}
// CHECK-NEXT: %[[Z:.*]] = "tile.num_programs"() {axis = 2 : i32}
// CHECK: %[[MOST:.*]] = arith.constant 2049 : index
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %{{.*}}, %[[MOST]] : index
// CHECK-NEXT: scf.if %[[FEW]] {
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
// CHECK: "tile.load"
// CHECK-NOT: griddepcontrol
func.func @copies(%x: memref<?xf32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.shared_bytes = 0 : i32} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1]>>
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<128xi32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
  %j = arith.addi %i, %i : tensor<128xi32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
  %t = "tile.load"(%x, %p) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> !t
  "tile.store"(%j, %y, %p) {dims = array<i32: 0>, options = {}} : (tensor<128xi32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>, memref<?xi32, strided<[1]>>, index) -> ()
  return
}

// -----
// In front of a loop or branch, whatever is in it.
// CHECK-LABEL: @loops
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK: {kind = "launch_dependents"}
// CHECK: scf.for
// CHECK-NOT: griddepcontrol
func.func @loops(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.shared_bytes = 0 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1]>>
  scf.for %i = %c0 to %n step %c1 {
    %t = "tile.load"(%x, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
  }
  return
}

// -----
// One that touches nothing waits as well: the launch behind it waits for this one alone.
// CHECK-LABEL: @nothing
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
// CHECK-NEXT: return
func.func @nothing() attributes {tile.kernel, tile.persistent = true, tile.shared_bytes = 0 : i32} {
  return
}

// -----
// What multiplies waits, but lets nobody in, who might crowd on the multiprocessor that is free first.
// CHECK-LABEL: @product
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NOT: launch_dependents
!a = tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!b = tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
!x = memref<?x?xbf16, strided<[?, 1]>>
func.func @product(%x: !x, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.shared_bytes = 0 : i32} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %a = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!x, index, index) -> !a
  %b = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!x, index, index) -> !b
  %r = "gpu_tile.mma"(%a, %b, %zero) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (!a, !b, !c) -> !c
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
