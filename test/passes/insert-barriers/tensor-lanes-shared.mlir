// Two of eight warps share lanes: what one has loaded another may not overwrite yet.
// RUN: tilec opt %s --passes insert-barriers --target sm_100a --num-warps 8 | filecheck %s

!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!p = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128,2):(1@0,32@1) V(32):(1@1)">>
!w = tensor<128x64xbf16, #gpu_tile.layout<"T(128,2):(1@0,32@1) V(32):(1@1)">>

// CHECK-LABEL: @eight
// CHECK: gpu_tile.buffer_load
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: gpu_tile.buffer_store
func.func @eight(%w: !w) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %p = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !p
  %y = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.buffer_store"(%w, %p) : (!w, !p) -> ()
  return
}
