// Scales of a product by mma.sync: through shared memory to the lanes that hold them, all of k at once.
// RUN: tilec opt %s --passes stage-operands --target sm_120a --num-warps 1 --split-input-file | filecheck %s

#acc = #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2,4):(1@1,8@0,16@0,8@1)">
#l = #gpu_tile.layout<"T(8,4):(16@1,1@0) V(16,8):(1@1,4@0)">
#r = #gpu_tile.layout<"T(8,4):(16@0,1@1) V(16,8):(1@0,4@1)">
#s = #gpu_tile.layout<"T(32):(1@0) V(4):(1@1)">
#t = #gpu_tile.layout<"T(32):(1@1) V(4):(1@0)">

// A register has four scales of one row, of two tiles of 16 rows, and of four of 8 columns.
// CHECK-LABEL: @four_steps
// CHECK: "gpu_tile.buffer_store"(%arg3, %[[S:[0-9]+]])
// CHECK: %[[V:.*]] = "gpu_tile.view"(%[[S]]
// CHECK: %[[LEFT:.*]] = "gpu_tile.buffer_load"(%[[V]]) : {{.*}} -> tensor<32x4xi8, #gpu_tile.layout<"T(4,8):(8@0,1@0) V(4):(1@1)">>
// CHECK: "gpu_tile.buffer_store"(%arg4, %[[T:[0-9]+]])
// CHECK: %[[W:.*]] = "gpu_tile.view"(%[[T]]
// CHECK: %[[RIGHT:.*]] = "gpu_tile.buffer_load"(%[[W]]) : {{.*}} -> tensor<4x32xi8, #gpu_tile.layout<"T(4,8):(8@1,1@1) V(4):(1@0)">>
// CHECK: "gpu_tile.mma_scaled"(%{{[^,]*}}, %{{[^,]*}}, %arg2, %[[LEFT]], %[[RIGHT]]) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e4m3"}
// CHECK: "gpu_tile.mma_scaled"({{.*}}, %[[LEFT]], %[[RIGHT]]) {block = 1 : i32
// CHECK: "gpu_tile.mma_scaled"({{.*}}, %[[LEFT]], %[[RIGHT]]) {block = 2 : i32
// CHECK: "gpu_tile.mma_scaled"({{.*}}, %[[LEFT]], %[[RIGHT]]) {block = 3 : i32
// CHECK-NOT: mma_scaled
func.func @four_steps(%a: tensor<32x128xf8E4M3FN, #l>, %b: tensor<128x32xf8E4M3FN, #r>, %c: tensor<32x32xf32, #acc>, %s: tensor<32x4xi8, #s>, %t: tensor<4x32xi8, #t>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e4m3", options = {instruction = "mma.mx.m16n8k32.f32.e4m3.e4m3"}, rhs_format = "e4m3"} : (tensor<32x128xf8E4M3FN, #l>, tensor<128x32xf8E4M3FN, #r>, tensor<32x32xf32, #acc>, tensor<32x4xi8, #s>, tensor<4x32xi8, #t>) -> tensor<32x32xf32, #acc>
  return
}

// -----
#acc = #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">
#l = #gpu_tile.layout<"T(4,8):(16@1,1@0) V(16,2):(1@1,8@0)">
#r = #gpu_tile.layout<"T(4,8):(16@0,1@1) V(16):(1@0)">
#s = #gpu_tile.layout<"T(2,16):(4@1,1@0) V(4):(1@1)">
#t = #gpu_tile.layout<"T(2,8,2):(4@0,1@1,0) V(4):(1@0)">

// Two numbers of 4 bits a byte: a step is 32 bytes, with four scales.
// CHECK-LABEL: @pairs
// CHECK: "gpu_tile.mma_scaled"({{.*}}) {block = 0 : i32, instruction = "mma.nv.m16n8k64.f32.e2m1.e2m1"} : (tensor<16x32xi8, {{.*}}>, tensor<32x8xi8, {{.*}}>, tensor<16x8xf32, {{.*}}>, tensor<16x8xf8E4M3FN, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(8):(1@1)">>, tensor<8x8xf8E4M3FN, #gpu_tile.layout<"T(4,8):(0,1@1) V(8):(1@0)">>)
// CHECK: "gpu_tile.mma_scaled"({{.*}}) {block = 4 : i32
// CHECK-NOT: mma_scaled
func.func @pairs(%a: tensor<16x64xi8, #l>, %b: tensor<64x8xi8, #r>, %c: tensor<16x8xf32, #acc>, %s: tensor<16x8xf8E4M3FN, #s>, %t: tensor<8x8xf8E4M3FN, #t>) attributes {tile.kernel} {
  %d = "tile.dot_scaled"(%a, %b, %c, %s, %t) {lhs_format = "e2m1", options = {instruction = "mma.nv.m16n8k64.f32.e2m1.e2m1"}, rhs_format = "e2m1"} : (tensor<16x64xi8, #l>, tensor<64x8xi8, #r>, tensor<16x8xf32, #acc>, tensor<16x8xf8E4M3FN, #s>, tensor<8x8xf8E4M3FN, #t>) -> tensor<16x8xf32, #acc>
  return
}
