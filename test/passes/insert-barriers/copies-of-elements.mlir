// One layout is not enough where threads hold copies of an element: one of them writes it.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#row = #gpu_tile.layout<"T(128):(1@0) V():()">
#back = #gpu_tile.layout<"T(4,32):(32@0,1@0) V():()">
!t = tensor<128xf32, #row>
!u = tensor<128xf32, #back>
!b = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
!h = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(128):(1)">>
!v = tensor<64xf32, #gpu_tile.layout<"T(2,32,2):(32@0,1@0,0) V():()">>

// CHECK-LABEL: @half
// CHECK: gpu_tile.buffer_store
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.buffer_load
func.func @half(%y: !v) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %i0 = arith.constant 0 : i32
  %low = "gpu_tile.view"(%s, %i0) : (!b, i32) -> !h
  "gpu_tile.buffer_store"(%y, %low) : (!v, !h) -> ()
  %p = "gpu_tile.buffer_load"(%low) : (!h) -> !v
  return
}
