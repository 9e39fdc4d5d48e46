// Conversions of what is free to make, of other conversions, and of nothing at all.
// RUN: tilec opt %s --passes remove-layout-conversions --target sm_80 | filecheck %s

!a = tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
!b = tensor<256xf32, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>

// A constant is made as it is wanted.
// CHECK-LABEL: @constant
// CHECK: %[[C:.*]] = arith.constant dense<1.000000e+00> : tensor<256xf32, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>
// CHECK-NOT: gpu_tile.convert_layout
// CHECK: return %[[C]]
func.func @constant() -> !b attributes {tile.kernel} {
  %x = arith.constant dense<1.0> : !a
  %y = "gpu_tile.convert_layout"(%x) : (!a) -> !b
  return %y : !b
}

// There and back again.
// CHECK-LABEL: @back
// CHECK-SAME: (%[[X:.*]]: tensor
// CHECK: return %[[X]] :
func.func @back(%x: !a) -> !a attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!a) -> !b
  %z = "gpu_tile.convert_layout"(%y) : (!b) -> !a
  return %z : !a
}

// Computed values keep theirs.
// CHECK-LABEL: @computed
// CHECK: arith.negf
// CHECK-NEXT: gpu_tile.convert_layout
func.func @computed(%x: !a) -> !b attributes {tile.kernel} {
  %n = arith.negf %x : !a
  %y = "gpu_tile.convert_layout"(%n) : (!a) -> !b
  return %y : !b
}
