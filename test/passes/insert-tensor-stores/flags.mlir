// No program reads what is stored: a flag between programs speaks of other arrays.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!flags = memref<?xi32, strided<[1]>>
!one = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!yes = tensor<i1, #gpu_tile.layout<"T(128):(0) V():()">>
!acc = tensor<64x128xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!row = tensor<64x128xbf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,8):(1@1,8@0)">>

// CHECK: gpu_tile.warp_tma_store
// CHECK: tile.atomic_rmw
func.func @flags(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %f: !flags) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1> : !one
  %yes = arith.constant dense<true> : !yes
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  %old = "tile.atomic_rmw"(%one, %f, %yes, %one) {kind = "exchange", options = {}, order = "release", scope = "gpu"} : (!one, !flags, !yes, !one) -> !one
  return
}
