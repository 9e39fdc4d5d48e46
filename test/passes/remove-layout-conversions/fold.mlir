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

// What follows from coordinates alone is computed again, through broadcasts and conversions.
// CHECK-LABEL: @coordinates
// CHECK: "tile.iota"() {{.*}} -> tensor<64xi32, #gpu_tile.layout<"T(16,8):(4@0,0) V(4):(1@0)">>
// CHECK-NOT: gpu_tile.convert_layout
// CHECK: %[[REST:.*]] = arith.remsi {{.*}} : tensor<1x64xi32, #gpu_tile.layout<"T(16,8):(4@1,0) V(4):(1@1)">>
// CHECK: return %[[REST]]
!n = tensor<64xi32, #gpu_tile.layout<"T(64,2):(1@0,0) V():()">>
!n_again = tensor<64xi32, #gpu_tile.layout<"T(2,64):(0,1@0) V():()">>
!row = tensor<1x64xi32, #gpu_tile.layout<"T(2,64):(0,1@1) V():()">>
!row_wanted = tensor<1x64xi32, #gpu_tile.layout<"T(16,8):(4@1,0) V(4):(1@1)">>
func.func @coordinates(%first: i32) -> !row_wanted attributes {tile.kernel} {
  %at = "tile.iota"() {axis = 0 : i32} : () -> !n
  %by = tensor.splat %first : !n
  %sum = arith.addi %at, %by : !n
  %again = "gpu_tile.convert_layout"(%sum) : (!n) -> !n_again
  %row = "tile.broadcast"(%again) {dims = array<i32: 1>} : (!n_again) -> !row
  %eight = arith.constant dense<8> : !row
  %rest = arith.remsi %row, %eight : !row
  %y = "gpu_tile.convert_layout"(%rest) : (!row) -> !row_wanted
  return %y : !row_wanted
}

// Five steps are a conversion's worth.
// CHECK-LABEL: @many_steps
// CHECK: gpu_tile.convert_layout
func.func @many_steps(%first: i32) -> !n_again attributes {tile.kernel} {
  %at = "tile.iota"() {axis = 0 : i32} : () -> !n
  %a = arith.muli %at, %at : !n
  %b = arith.xori %a, %at : !n
  %c = arith.muli %b, %a : !n
  %d = arith.xori %c, %b : !n
  %e = arith.muli %d, %c : !n
  %y = "gpu_tile.convert_layout"(%e) : (!n) -> !n_again
  return %y : !n_again
}
