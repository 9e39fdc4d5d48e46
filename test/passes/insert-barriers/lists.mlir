// Arrays of one list may be the same; those of two lists are not.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 --split-input-file | filecheck %s

#by1 = #gpu_tile.layout<"T(128):(1@0) V():()">
#by2 = #gpu_tile.layout<"T(64,2):(2@0,0) V(2):(1@0)">
!a = memref<?xf32, strided<[1]>>
!l = memref<?x!a>
!v = tensor<128xf32, #by1>
!w = tensor<128xf32, #by2>

// CHECK-LABEL: @one_list
// CHECK: "tile.store"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: "tile.load"
func.func @one_list(%xs: !l, %i: index, %j: index, %v: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.array_at"(%xs, %i) {options = {}} : (!l, index) -> !a
  %b = "tile.array_at"(%xs, %j) {options = {}} : (!l, index) -> !a
  "tile.store"(%v, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  %x = "tile.load"(%b, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !w
  return
}

// CHECK-LABEL: @two_lists
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @two_lists(%xs: !l, %ys: !l, %i: index, %v: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.array_at"(%xs, %i) {options = {}} : (!l, index) -> !a
  %b = "tile.array_at"(%ys, %i) {options = {}} : (!l, index) -> !a
  "tile.store"(%v, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  %x = "tile.load"(%b, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !w
  return
}

// In place, each thread what it wrote.
// CHECK-LABEL: @in_place
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @in_place(%xs: !l, %i: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.array_at"(%xs, %i) {options = {}} : (!l, index) -> !a
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!a, index) -> !v
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  return
}
