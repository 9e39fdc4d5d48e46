// Shared-memory buffers and their traffic, printed as they were read.
// RUN: %roundtrip

#rows = #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">
!square = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
!panels = !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>

// CHECK-LABEL: @padded
func.func @padded(%t: tensor<64x64xf32, #rows>) -> tensor<64x64xf32, #rows> {
  // CHECK: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
  %b = "gpu_tile.alloc"() {options = {}} : () -> !square
  // CHECK: "gpu_tile.buffer_store"(%{{.*}}, %{{.*}}) : (tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>, !gpu_tile.buffer<{{.*}}>) -> ()
  "gpu_tile.buffer_store"(%t, %b) : (tensor<64x64xf32, #rows>, !square) -> ()
  // CHECK: "gpu_tile.buffer_load"(%{{.*}}) : (!gpu_tile.buffer<{{.*}}>) -> tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
  %l = "gpu_tile.buffer_load"(%b) : (!square) -> tensor<64x64xf32, #rows>
  return %l : tensor<64x64xf32, #rows>
}

// CHECK-LABEL: @swizzled_panels
func.func @swizzled_panels(%i: i32) {
  // CHECK: "gpu_tile.alloc"() {options = {offset = 2048 : i32}} : () -> !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>
  %b = "gpu_tile.alloc"() {options = {offset = 2048 : i32}} : () -> !panels
  // CHECK: "gpu_tile.view"(%{{.*}}, %{{.*}}, %{{.*}}) : (!gpu_tile.buffer<{{.*}}>, i32, i32) -> !gpu_tile.buffer<tensor<16x128xbf16>, {{.*}}>
  %v = "gpu_tile.view"(%b, %i, %i) : (!panels, i32, i32) -> !gpu_tile.buffer<tensor<16x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>
  return
}

// CHECK-LABEL: @gather_inside_a_buffer
func.func @gather_inside_a_buffer(%i: tensor<3x32xi64, #gpu_tile.layout<"T(32):(1@1) V(3):(1@0)">>) {
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<7x32xf16>, #gpu_tile.shared<"(7,32):(32,1)">>
  // CHECK: "gpu_tile.buffer_gather"(%{{.*}}, %{{.*}}) {axis = 0 : i32}
  %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 0 : i32} : (!gpu_tile.buffer<tensor<7x32xf16>, #gpu_tile.shared<"(7,32):(32,1)">>, tensor<3x32xi64, #gpu_tile.layout<"T(32):(1@1) V(3):(1@0)">>) -> tensor<3x32xf16, #gpu_tile.layout<"T(32):(1@1) V(3):(1@0)">>
  return
}

// CHECK-LABEL: @dense_memory_under_another_shape
func.func @dense_memory_under_another_shape() {
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<8x64xi1>, #gpu_tile.shared<"(8,64):(64,1)">>
  // CHECK: "gpu_tile.reshape_view"(%{{.*}}) : (!gpu_tile.buffer<{{.*}}>) -> !gpu_tile.buffer<tensor<2x4x64xi1>, #gpu_tile.shared<"(2,4,64):(256,64,1)">>
  %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<8x64xi1>, #gpu_tile.shared<"(8,64):(64,1)">>) -> !gpu_tile.buffer<tensor<2x4x64xi1>, #gpu_tile.shared<"(2,4,64):(256,64,1)">>
  return
}

!tensor = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"((16,4,2),64):((1@lane,32@lane,16@lane),1@col)">>
!slot = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"((16,4,2),64):((1@lane,32@lane,16@lane),1@col)">>
!half = !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem<"((16,4,2),64):((1@lane,32@lane,16@lane),1@col)">>

// CHECK-LABEL: @in_tensor_memory
func.func @in_tensor_memory(%i: i32) -> tensor<128x32xf32, #gpu_tile.layout<"T(16,2,4):(1@0,64@0,16@0) V(32):(1@1)">> {
  // CHECK: "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"((16,4,2),64):((1@lane,32@lane,16@lane),1@col)">>
  %t = "gpu_tile.alloc"() {options = {}} : () -> !tensor
  %s = "gpu_tile.slot"(%t, %i) : (!tensor, i32) -> !slot
  // CHECK: "gpu_tile.view"(%{{.*}}, %{{.*}}, %{{.*}}) : (!gpu_tile.buffer<tensor<128x64xf32>, {{.*}}>, i32, i32) -> !gpu_tile.buffer<tensor<128x32xf32>, #gpu_tile.tmem
  %v = "gpu_tile.view"(%s, %i, %i) : (!slot, i32, i32) -> !half
  %l = "gpu_tile.buffer_load"(%v) : (!half) -> tensor<128x32xf32, #gpu_tile.layout<"T(16,2,4):(1@0,64@0,16@0) V(32):(1@1)">>
  return %l : tensor<128x32xf32, #gpu_tile.layout<"T(16,2,4):(1@0,64@0,16@0) V(32):(1@1)">>
}

// CHECK-LABEL: @transposed
func.func @transposed(%s: !square, %t: !slot) {
  // CHECK: "gpu_tile.transpose_view"(%{{.*}}) {permutation = array<i32: 1, 0>} : (!gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(1,68)">>
  %v = "gpu_tile.transpose_view"(%s) {permutation = array<i32: 1, 0>} : (!square) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(1,68)">>
  // CHECK: "gpu_tile.transpose_view"{{.*}} -> !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(16,4,2)):(1@col,(1@lane,32@lane,16@lane))">>
  %w = "gpu_tile.transpose_view"(%t) {permutation = array<i32: 1, 0>} : (!slot) -> !gpu_tile.buffer<tensor<64x128xf32>, #gpu_tile.tmem<"(64,(16,4,2)):(1@col,(1@lane,32@lane,16@lane))">>
  return
}

// What lies row by row may be named otherwise: scales of blocks, of rows 0, 32, 64 and 96 together.
// CHECK-LABEL: @scales
func.func @scales(%b: !gpu_tile.buffer<tensor<2x256xi8>, #gpu_tile.shared<"(2,256):(256,1)">>) {
  // CHECK: "gpu_tile.reshape_view"(%{{.*}}) : (!gpu_tile.buffer<{{.*}}>) -> !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.shared<"((32,4),4):((16,4),1)">>
  %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<2x256xi8>, #gpu_tile.shared<"(2,256):(256,1)">>) -> !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.shared<"((32,4),4):((16,4),1)">>
  return
}

// CHECK-LABEL: @count_in_rows
func.func @count_in_rows(%v: tensor<64xi64, #gpu_tile.layout<"T(64):(1@0) V():()">>, %ok: tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>) {
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>
  // CHECK: "gpu_tile.buffer_count"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<64xi64, {{.*}}>, tensor<64xi1, {{.*}}>, !gpu_tile.buffer<{{.*}}>) -> ()
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi64, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
  return
}
