// An order that is there is kept: the pass may run twice.
// RUN: tilec opt %s --passes schedule-programs,schedule-programs --target sm_80 --num-warps 1 | filecheck %s

!x = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!y = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!c = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

// CHECK-LABEL: @matmul
// CHECK: gpu_tile.tile_order
// CHECK-NOT: gpu_tile.tile_order
func.func @matmul(%n: index, %x: !x, %y: !y, %z: !c) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %j = "tile.program_id"() {axis = 1 : i32} : () -> index
  %u = arith.muli %i, %j : index
  "tile.assume"(%u) {facts = {}} : (index) -> ()
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %z) -> (!c) {
    %d = "gpu_tile.mma"(%x, %y, %s) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!x, !y, !c) -> !c
    scf.yield %d : !c
  }
  return
}
