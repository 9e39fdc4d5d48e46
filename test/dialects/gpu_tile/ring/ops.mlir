// Rings and slots, printed as they were read.
// RUN: %roundtrip

!ring = !gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!slot = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>

// CHECK-LABEL: @slot_of_an_iteration
func.func @slot_of_an_iteration(%ring: !ring, %count: i32) {
  // CHECK: %[[P:.*]]:2 = "gpu_tile.ring_position"(%{{.*}}) {slots = 3 : i32} : (i32) -> (i32, i1)
  %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
  // CHECK: "gpu_tile.slot"(%{{.*}}, %[[P]]#0) : (!gpu_tile.buffer<tensor<3x64x64xf32>, {{.*}}>, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
  %s = "gpu_tile.slot"(%ring, %slot) : (!ring, i32) -> !slot
  return
}

// CHECK-LABEL: @swizzled_ring_of_one
func.func @swizzled_ring_of_one(%i: i32) {
  // CHECK: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  %ring = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  %s = "gpu_tile.slot"(%ring, %i) : (!gpu_tile.buffer<tensor<1x16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>, i32) -> !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
  return
}
