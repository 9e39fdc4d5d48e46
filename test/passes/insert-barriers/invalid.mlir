// A program that comes in between passes, one of whose waits is gone.
// RUN: tilec opt %s --passes insert-barriers --target sm_90a --num-warps 4 --verify-diagnostics

!t = tensor<64x64xbf16, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,4):(1@1,16@0)">>
!s = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = !gpu_tile.pending<!acc>

func.func @refill(%x: !t, %p: !p, %n: index, %zero: index, %one: index) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  %last = scf.for %i = %zero to %n step %one iter_args(%acc = %p) -> (!p) {
    // expected-error @below {{'gpu_tile.buffer_store' writes a buffer whose asynchronous reader was not waited for}}
    "gpu_tile.buffer_store"(%x, %s) : (!t, !s) -> ()
    %q = "gpu_tile.wgmma"(%s, %s, %acc) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!s, !s, !p) -> !p
    scf.yield %q : !p
  }
  return
}
