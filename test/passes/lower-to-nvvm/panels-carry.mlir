// Threads' rows begin at 0, 24, 48 and 72, registers have 24: a sum may lie in a further panel than the
// thread's part does, so every address is computed.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 | filecheck %s

!long = tensor<96x32xf32, #gpu_tile.layout<"T(32,2,2):(1@1,24@0,48@0) V(8,3):(1@0,8@0)">>
!three = !gpu_tile.buffer<tensor<96x32xf32>, #gpu_tile.shared<"((32,3),32):((1,1024),32)">>

// CHECK-LABEL: @carries
// CHECK-COUNT-6: arith.remui %{{.*}}, %c32_i32
func.func @carries(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.num_warps = 4 : i32, tile.shared_bytes = 16384 : i32} {
  %buffer = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !three
  %a = "gpu_tile.buffer_load"(%buffer) : (!three) -> !long
  return
}
