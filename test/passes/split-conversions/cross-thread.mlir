// What crosses threads goes through a buffer, what does not stays.
// RUN: tilec opt %s --passes split-conversions --target sm_80 --num-warps 4 | filecheck %s

!a = tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
!b = tensor<256xf32, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>
!c = tensor<4x128xf32, #gpu_tile.layout<"T(128):(1@1) V(2,2):(1@0,2@0)">>
!d = tensor<4x128xf32, #gpu_tile.layout<"T(128):(1@1) V(2,2):(2@0,1@0)">>

// CHECK-LABEL: @across
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: %[[S:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<256xf32>
// CHECK-NEXT: "gpu_tile.buffer_store"(%[[X]], %[[S]])
// CHECK-NEXT: %[[Y:.*]] = "gpu_tile.buffer_load"(%[[S]]) {{.*}}"T(128):(1@0) V(2):(128@0)"
// CHECK-NOT: gpu_tile.convert_layout
// CHECK: return %[[Y]]
func.func @across(%x: !a) -> !b attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!a) -> !b
  return %y : !b
}

// Each thread has the same elements, in another order.
// CHECK-LABEL: @inside
// CHECK-NOT: gpu_tile.alloc
// CHECK: gpu_tile.convert_layout
func.func @inside(%x: !c) -> !d attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!c) -> !d
  return %y : !d
}
