// What stays inside warps stays a conversion, for shuffles, where they cost less than a buffer.
// RUN: tilec opt %s --passes split-conversions --target sm_80 --num-warps 1 | filecheck %s

!a = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!b = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!c = tensor<2x32xf32, #gpu_tile.layout<"T(32):(1@1) V(2):(1@0)">>
!h = tensor<32xf32, #gpu_tile.layout<"T(16,2):(1@0,16@0) V():()">>
!p = tensor<33xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!q = tensor<33xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!r = tensor<33xf32, #gpu_tile.layout<"T(32):(1@0) V(3):(32@0)">>
!s = tensor<3x16xf32, #gpu_tile.layout<"T(8,4):(2@1,1@0) V(2):(1@1)">>
!v = tensor<3x8x2xf32, #gpu_tile.layout<"T(8,4):(1@1,1@0) V(2):(1@2)">>
!w = tensor<3x8x1xf32, #gpu_tile.layout<"T(8,4):(1@1,1@0) V():()">>
!t = tensor<64x64xf32, #gpu_tile.layout<"T(32):(1@0) V(2,64):(32@0,1@1)">>
!u = tensor<64x64xf32, #gpu_tile.layout<"T(32):(1@1) V(2,64):(32@1,1@0)">>

// CHECK-LABEL: @inside_a_warp
// CHECK-NOT: gpu_tile.alloc
// CHECK: gpu_tile.convert_layout
func.func @inside_a_warp(%x: !a) -> !b attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!a) -> !b
  return %y : !b
}

// A reshape in registers, then the conversion.
// CHECK-LABEL: @reshape
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[R:.*]] = "tile.reshape"(%[[X]]) {{.*}} -> tensor<2x32xf32, #gpu_tile.layout<"T(16,2):(2@1,1@0) V(2):(1@1)">>
// CHECK-NEXT: %[[Y:.*]] = "gpu_tile.convert_layout"(%[[R]]) {{.*}} -> tensor<2x32xf32, #gpu_tile.layout<"T(32):(1@1) V(2):(1@0)">>
// CHECK-NEXT: return %[[Y]]
func.func @reshape(%x: !a) -> !c attributes {tile.kernel} {
  %y = "tile.reshape"(%x) : (!a) -> !c
  return %y : !c
}

// CHECK-LABEL: @join
// CHECK-NEXT: %[[J:.*]] = "tile.join"{{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
// CHECK-NEXT: %[[Y:.*]] = "gpu_tile.convert_layout"(%[[J]]) {{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
// CHECK-NEXT: return %[[Y]]
func.func @join(%x: !h, %y: !h) -> !a attributes {tile.kernel} {
  %z = "tile.join"(%x, %y) {axis = 0 : i32} : (!h, !h) -> !a
  return %z : !a
}

// CHECK-LABEL: @split
// CHECK-NEXT: %[[C:.*]] = "gpu_tile.convert_layout"({{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
// CHECK-NEXT: "tile.split"(%[[C]])
func.func @split(%x: !a) -> !h attributes {tile.kernel} {
  %y, %z = "tile.split"(%x) {axis = 0 : i32} : (!a) -> (!h, !h)
  return %y : !h
}

// Registers past the edge move as others do, if both sides have them.
// CHECK-LABEL: @phantoms
// CHECK-NOT: gpu_tile.alloc
// CHECK: gpu_tile.convert_layout
func.func @phantoms(%x: !p) -> !q attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!p) -> !q
  return %y : !q
}

// CHECK-LABEL: @phantoms_of_one
// CHECK: gpu_tile.alloc
// CHECK-NOT: gpu_tile.convert_layout
func.func @phantoms_of_one(%x: !p) -> !r attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!p) -> !r
  return %y : !r
}

// Rows past the edge stay in their threads; columns are paired, taken apart and put together.
// CHECK-LABEL: @beside_phantoms
// CHECK-NOT: gpu_tile.{{alloc|convert}}
// CHECK: return
func.func @beside_phantoms(%x: !s) -> !s attributes {tile.kernel} {
  %p = "tile.reshape"(%x) : (!s) -> !v
  %a, %b = "tile.split"(%p) {axis = 2 : i32} : (!v) -> (!w, !w)
  %j = "tile.join"(%b, %a) {axis = 2 : i32} : (!w, !w) -> !v
  %y = "tile.reshape"(%j) : (!v) -> !s
  return %y : !s
}

// All five bits of the lane change places with bits of 128 registers: more selects than a buffer costs.
// CHECK-LABEL: @dear
// CHECK: gpu_tile.alloc
// CHECK-NOT: gpu_tile.convert_layout
func.func @dear(%x: !t) -> !u attributes {tile.kernel} {
  %y = "gpu_tile.convert_layout"(%x) : (!t) -> !u
  return %y : !u
}

// The same in a kernel whose author writes every buffer.
// CHECK-LABEL: @explicit
// CHECK-NEXT: gpu_tile.convert_layout
func.func @explicit(%x: !t) -> !u attributes {tile.kernel, tile.explicit} {
  %y = "gpu_tile.convert_layout"(%x) : (!t) -> !u
  return %y : !u
}
