// Neighbours of a tile that lie apart in memory, as the colours of pixels or the taps of channels do,
// share sectors where neighbouring lanes have them: so do what is stored beside them in rows.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!p = memref<?x3xbf16, strided<[3, 1]>>
!r = memref<?x?xbf16, strided<[?, 1]>>
!t = tensor<1024xbf16>

// Three loads of single elements have more to say than one store of vectors.
// CHECK-LABEL: @planes
// CHECK-COUNT-3: "tile.load"({{.*}} -> tensor<1024xbf16, #gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">>
func.func @planes(%p: !p {tile.facts = {align = 16 : i32}}, %r: !r {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = "tile.load"(%p, %c0, %c0) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!p, index, index) -> !t
  %b = "tile.load"(%p, %c0, %c1) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!p, index, index) -> !t
  %c = "tile.load"(%p, %c0, %c2) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!p, index, index) -> !t
  %ab = arith.addf %a, %b : !t
  %abc = arith.addf %ab, %c : !t
  "tile.store"(%abc, %r, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!t, !r, index, index) -> ()
  return
}

// Where nothing lies apart vectors stay.
// CHECK-LABEL: @rows
// CHECK: "tile.load"({{.*}} -> tensor<1024xbf16, #gpu_tile.layout<"T(128):(8@0) V(8):(1@0)">>
func.func @rows(%x: !r {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %r: !r {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %a = "tile.load"(%x, %c0, %c0) {dims = array<i32: 1>, padding = 0.0 : bf16, options = {}} : (!r, index, index) -> !t
  "tile.store"(%a, %r, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!t, !r, index, index) -> ()
  return
}
