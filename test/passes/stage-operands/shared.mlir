// Two dots that read one tile alike share its buffer.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<32x32xbf16>
!c = tensor<32x32xf32>

// CHECK-LABEL: @gate_and_up
// CHECK: %[[A:.*]] = "tile.load"(%arg0
// CHECK: %[[S:.*]] = "gpu_tile.alloc"
// CHECK-NEXT: "gpu_tile.buffer_store"(%[[A]], %[[S]])
// CHECK-NOT: "gpu_tile.buffer_store"(%[[A]]
// CHECK: return
func.func @gate_and_up(%a: !m, %b: !m, %d: !m, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %ta = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %td = "tile.load"(%d, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %gate = "tile.dot"(%ta, %tb, %zero) {options = {}} : (!a, !a, !c) -> !c
  %up = "tile.dot"(%ta, %td, %gate) {options = {}} : (!a, !a, !c) -> !c
  "tile.store"(%up, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
