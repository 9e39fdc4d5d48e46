// Products into tensor memory, printed as they were read.
// RUN: %roundtrip

!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!rows = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!bar = !gpu_tile.barrier

// CHECK-LABEL: @operands_in_shared_memory
func.func @operands_in_shared_memory(%a: !a, %b: !b, %acc: !acc, %use: i1, %done: !bar, %slot: i32) {
  // CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!gpu_tile.buffer<{{.*}}>, !gpu_tile.buffer<{{.*}}>, !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>, i1) -> ()
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  // CHECK: "gpu_tile.tcgen05_commit"(%{{.*}}, %{{.*}}) : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.tcgen05_commit"(%done, %slot) : (!bar, i32) -> ()
  return
}

// CHECK-LABEL: @lhs_in_tensor_memory
func.func @lhs_in_tensor_memory(%a: !rows, %b: !b, %acc: !acc, %use: i1) {
  // CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}) {{.*}} : (!gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"} : (!rows, !b, !acc, i1) -> ()
  return
}

// CHECK-LABEL: @the_memory
func.func @the_memory() {
  // CHECK: "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {}} : () -> ()
  "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {}} : () -> ()
  // CHECK: "gpu_tile.release_tensor_memory"() {columns = 64 : i32} : () -> ()
  "gpu_tile.release_tensor_memory"() {columns = 64 : i32} : () -> ()
  return
}

// CHECK-LABEL: @copies
func.func @copies(%s: !gpu_tile.buffer<tensor<32x16xi8>, #gpu_tile.shared<"(32,16):(16,1)">>, %t: !gpu_tile.buffer<tensor<32x16xi8>, #gpu_tile.tmem<"(32,16):(1@lane,8@bit)">>) {
  // CHECK: "gpu_tile.tcgen05_copy"(%{{.*}}, %{{.*}}) {shape = "32x128b.warpx4"}
  "gpu_tile.tcgen05_copy"(%s, %t) {shape = "32x128b.warpx4"} : (!gpu_tile.buffer<tensor<32x16xi8>, #gpu_tile.shared<"(32,16):(16,1)">>, !gpu_tile.buffer<tensor<32x16xi8>, #gpu_tile.tmem<"(32,16):(1@lane,8@bit)">>) -> ()
  return
}

!left = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!pair = !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(64,2)):(1@lane,(1@col,64@lane))">>

// CHECK-LABEL: @by_a_pair
func.func @by_a_pair(%a: !left, %b: !b, %acc: !pair, %use: i1, %done: !bar, %slot: i32) {
  // CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}) {instruction = "tcgen05.pair.m128n128k16.f32.bf16.bf16"}
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.pair.m128n128k16.f32.bf16.bf16"} : (!left, !b, !pair, i1) -> ()
  // CHECK: "gpu_tile.tcgen05_multicast_commit"(%{{.*}}, %{{.*}}, %{{.*}}) : (!gpu_tile.barrier, i32, i32) -> ()
  "gpu_tile.tcgen05_multicast_commit"(%done, %slot, %slot) : (!bar, i32, i32) -> ()
  return
}

!eights = !gpu_tile.buffer<tensor<128x128xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,128):(128,1)">>
!rights = !gpu_tile.buffer<tensor<128x64xf8E4M3FN>, #gpu_tile.shared<"S<3,4,3> o (128,64):(1,128)">>
!sa = !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<"((32,4),4):((1@lane,1@col),8@bit)">>
!sb = !gpu_tile.buffer<tensor<64x4xi8>, #gpu_tile.tmem<"((32,2),4):((1@lane,1@col),8@bit)">>

// CHECK-LABEL: @with_scales
func.func @with_scales(%a: !eights, %sa: !sa, %b: !rights, %sb: !sb, %acc: !acc, %use: i1) {
  // CHECK: "gpu_tile.tcgen05_mma_scaled"(%{{.*}}) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"}
  "gpu_tile.tcgen05_mma_scaled"(%a, %b, %acc, %use, %sa, %sb) {instruction = "tcgen05.mx.m128n64k32.f32.e4m3.e4m3"} : (!eights, !rights, !acc, i1, !sa, !sb) -> ()
  return
}
