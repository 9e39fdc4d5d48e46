// Stores that fill their sectors leave through the copy engine where its buffers take little of
// shared memory: 32 KiB of 227, not of 99.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 8 | filecheck %s --check-prefix=MUCH
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_120a --num-warps 8 | filecheck %s --check-prefix=LITTLE

// MUCH-LABEL: @sums
// MUCH: tensor<2x128x32xf32>
// MUCH: gpu_tile.warp_tma_store
// LITTLE-LABEL: @sums
// LITTLE-NOT: tma
// LITTLE: tile.store
!sums = tensor<128x64xf32, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!f = memref<?x?xf32, strided<[?, 1]>>
func.func @sums(%c: !f {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !sums
  %i128 = arith.constant 128 : i32
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %w = %first to %i128 step %step : i32 {
    "tile.store"(%x, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!sums, !f, index, index) -> ()
  }
  return
}
