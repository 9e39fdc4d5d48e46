// What stays inside a thread or a warp, and what is written out, stays as it is.
// RUN: tilec opt %s --passes keep-explicit --target sm_80 --num-warps 1 | filecheck %s

!a = tensor<32x4xf32, #gpu_tile.layout<"T(32):(1@0) V(2,2):(1@1,2@1)">>
!b = tensor<32x4xf32, #gpu_tile.layout<"T(32):(1@0) V(2,2):(2@1,1@1)">>
!s = !gpu_tile.buffer<tensor<32x4xf32>, #gpu_tile.shared<"(32,4):(4,1)">>

// CHECK-LABEL: @thread
// CHECK-NEXT: gpu_tile.convert_layout
// CHECK-NEXT: return
func.func @thread(%x: !a) -> !b attributes {tile.kernel, tile.explicit} {
  %y = "gpu_tile.convert_layout"(%x) : (!a) -> !b
  return %y : !b
}

// CHECK-LABEL: @warp
// CHECK-NEXT: tile.reduce
// CHECK-NOT: gpu_tile.alloc
func.func @warp(%x: !a) attributes {tile.kernel, tile.explicit} {
  %y = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32} : (!a) -> tensor<4xf32, #gpu_tile.layout<"T(32):(0) V(4):(1@0)">>
  return
}

// CHECK-LABEL: @written
// CHECK-NEXT: gpu_tile.alloc
// CHECK-NEXT: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: return
func.func @written(%x: !a) -> !b attributes {tile.kernel, tile.explicit} {
  %s = "gpu_tile.alloc"() {options = {}} : () -> !s
  "gpu_tile.buffer_store"(%x, %s) : (!a, !s) -> ()
  %y = "gpu_tile.buffer_load"(%s) : (!s) -> !b
  return %y : !b
}
