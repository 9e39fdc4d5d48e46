// More columns than there are: every buffer is named.
// RUN: tilec opt %s --passes allocate-tensor-memory --target sm_100a --num-warps 4 --verify-diagnostics

!ring = !gpu_tile.buffer<tensor<2x128x256xf32>, #gpu_tile.tmem<"(128,256):(1@lane,1@col)">>
!slot = !gpu_tile.buffer<tensor<128x256xf32>, #gpu_tile.tmem<"(128,256):(1@lane,1@col)">>
!more = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!y = tensor<128x256xf32, #gpu_tile.layout<"T(128):(1@0) V(256):(1@1)">>
!x = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>
// expected-error @below {{the kernel needs 528 columns of tensor memory, a CTA has 512}}
func.func @too_much(%i: i32) attributes {tile.kernel} {
  %r = "gpu_tile.alloc"() {options = {}} : () -> !ring
  %m = "gpu_tile.alloc"() {options = {}} : () -> !more
  %before = "gpu_tile.buffer_load"(%m) : (!more) -> !x
  %s = "gpu_tile.slot"(%r, %i) : (!ring, i32) -> !slot
  %beside = "gpu_tile.buffer_load"(%s) : (!slot) -> !y
  %after = "gpu_tile.buffer_load"(%m) : (!more) -> !x
  return
}
