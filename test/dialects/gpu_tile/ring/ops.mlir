// Rings of buffers, printed as they were read.
// RUN: %roundtrip

!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!one = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>

// CHECK-LABEL: @position_and_slot
func.func @position_and_slot(%count: i32) {
  %ring = "gpu_tile.alloc"() {options = {}} : () -> !ring
  // CHECK: %[[SLOT:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = 3 : i32} : (i32) -> (i32, i1)
  %i, %parity = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
  // CHECK: "gpu_tile.slot"(%{{.*}}, %[[SLOT]]#0) : (!gpu_tile.buffer<tensor<3x64x64xf32>, {{.*}}>, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, {{.*}}>
  %s = "gpu_tile.slot"(%ring, %i) : (!ring, i32) -> !one
  return
}
