// What a program stores it may load again by another thread; what it loads, another may overwrite.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 --split-input-file | filecheck %s

#by1 = #gpu_tile.layout<"T(128):(1@0) V():()">
#by2 = #gpu_tile.layout<"T(64,2):(2@0,0) V(2):(1@0)">
#all = #gpu_tile.layout<"T(128):(0) V():()">
!a = memref<?xf32, strided<[1]>>
!v = tensor<128xf32, #by1>
!w = tensor<128xf32, #by2>
!s = tensor<f32, #all>

// In place: each thread writes what it read.
// CHECK-LABEL: @in_place
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @in_place(%a: !a) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
  %y = arith.addf %x, %x : !v
  "tile.store"(%y, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  return
}

// Of two arrays none is read and written.
// CHECK-LABEL: @two_arrays
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @two_arrays(%a: !a, %b: !a) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !w
  "tile.store"(%x, %b, %c0) {dims = array<i32: 0>, options = {}} : (!w, !a, index) -> ()
  return
}

// One element that all threads read; every 128 written behind it.
// CHECK-LABEL: @overwritten
// CHECK: "tile.load"
// CHECK: "tile.load"
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "tile.store"
func.func @overwritten(%a: !a) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
  %one = "tile.load"(%a, %c0) {dims = array<i32>, padding = 0.0 : f32, options = {}} : (!a, index) -> !s
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  return
}

// Loaded again by other threads; then a part that nobody has touched.
// CHECK-LABEL: @stored_and_loaded
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.load"
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @stored_and_loaded(%a: !a, %x: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant dense<1.0> : !v
  "tile.store"(%one, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  %y = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !w
  "tile.store"(%one, %a, %c128) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  return
}

// -----

#by1 = #gpu_tile.layout<"T(128):(1@0) V():()">
#by2 = #gpu_tile.layout<"T(64,2):(2@0,0) V(2):(1@0)">
!a = memref<?xf32, strided<[1]>>
!v = tensor<128xf32, #by1>
!w = tensor<128xf32, #by2>

// A loop in place that moves on by a whole tile, then the first tile again.
// CHECK-LABEL: @streamed
// CHECK: scf.for
// CHECK-NOT: gpu_tile.sync
// CHECK: "tile.store"
// CHECK: }
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "tile.load"
func.func @streamed(%a: !a, %b: !a, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %n step %c128 {
    %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
    "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  }
  %y = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
  "tile.store"(%y, %b, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  return
}

// By half a tile: each iteration reads what the one before wrote.
// CHECK-LABEL: @overlapping
// CHECK: scf.for
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "tile.load"
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @overlapping(%a: !a, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %n step %c64 {
    %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
    "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  }
  return
}

// -----

#by1 = #gpu_tile.layout<"T(128):(1@0) V():()">
!a = memref<?xf32, strided<[1]>>
!v = tensor<128xf32, #by1>
!i = tensor<128xi32, #by1>
!m = tensor<128xi1, #by1>

// A scatter where the gather was, by the same threads; a gather elsewhere, which reads what may be
// another's; and atomics, which need no order among each other.
// CHECK-LABEL: @indexed
// CHECK: "tile.gather"
// CHECK-NOT: gpu_tile.sync
// CHECK: "tile.scatter"
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "tile.gather"
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "tile.atomic_rmw"
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @indexed(%a: !a, %i: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : !m
  %zero = arith.constant dense<0.0> : !v
  %one = arith.constant dense<1> : !i
  %at = "tile.load"(%i, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> !i
  %next = arith.addi %at, %one : !i
  %x = "tile.gather"(%a, %mask, %zero, %at) {options = {}} : (!a, !m, !v, !i) -> !v
  "tile.scatter"(%x, %a, %mask, %at) {options = {}} : (!v, !a, !m, !i) -> ()
  %y = "tile.gather"(%a, %mask, %zero, %next) {options = {}} : (!a, !m, !v, !i) -> !v
  %old = "tile.atomic_rmw"(%y, %a, %mask, %at) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!v, !a, !m, !i) -> !v
  %older = "tile.atomic_rmw"(%y, %a, %mask, %next) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (!v, !a, !m, !i) -> !v
  return
}
