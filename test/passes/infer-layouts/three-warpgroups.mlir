// The slowest mode of the threads deals a tile to three warpgroups, or says that all hold the same.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_90a --num-warps 12 | filecheck %s

// CHECK-LABEL: @dealt
// Rows of loaded tiles are dealt out, too; where three does not divide what a thread has, the last part ends behind the tile.
// CHECK: "tile.load"{{.*}} -> tensor<192x64xbf16, #gpu_tile.layout<"T(64,2,3):(1@1,1@0,64@0) V(32):(2@0)">>
// CHECK: "tile.load"{{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(64,2,3):(1@1,1@0,22@0) V(11):(2@0)">>
// 16 rows from warp to warp, 64 from warpgroup to warpgroup: one mode of twelve.
// CHECK: "tile.dot"{{.*}} -> tensor<192x64xf32, #gpu_tile.layout<"T(4,8,12):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
// What runs along the columns each of the three needs whole.
// CHECK: "gpu_tile.convert_layout"{{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(4,96):(2@0,0) V(2,8):(1@0,8@0)">>
func.func @dealt(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>, %v: memref<?xf32, strided<[1]>>, %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<192x64xf32>
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<192x64xbf16>
  %y = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<64x64xbf16>
  %d = "tile.dot"(%x, %y, %zero) {options = {}} : (tensor<192x64xbf16>, tensor<64x64xbf16>, tensor<192x64xf32>) -> tensor<192x64xf32>
  %w = "tile.load"(%v, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<64xf32>
  %wide = "tile.broadcast"(%w) {dims = array<i32: 1>} : (tensor<64xf32>) -> tensor<192x64xf32>
  %sum = arith.addf %d, %wide : tensor<192x64xf32>
  "tile.store"(%sum, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<192x64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
