// What is computed between two reshapes lies as the heavier of its accesses wants it, and the other one
// loads or stores it so.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 2 | filecheck %s

!bytes = memref<?x?xi8, strided<[?, 1]>>
!column = memref<?x?xf32, strided<[?, 1]>>
!halves = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @groups
// CHECK: "tile.load"{{.*}} -> tensor<1024xi8, #gpu_tile.layout<"T(64):(8@0) V(8,2):(1@0,512@0)">>
// CHECK: "tile.reshape"({{.*}}"T(64):(8@0) V(8,2):(1@0,512@0)">>) -> tensor<16x64xf32, #gpu_tile.layout<"T(8,8):(8@1,1@0) V(8,2):(1@1,8@0)">>
// CHECK: "tile.reshape"({{.*}}"T(8,8):(8@1,1@0) V(8,2):(1@1,8@0)">>) -> tensor<1024xf32, #gpu_tile.layout<"T(64):(8@0) V(8,2):(1@0,512@0)">>
// CHECK: "tile.store"({{.*}}tensor<1024xf16, #gpu_tile.layout<"T(64):(8@0) V(8,2):(1@0,512@0)">>
func.func @groups(%x: !bytes {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                  %y: !halves {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                  %scales: !column, %m: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %b = "tile.load"(%x, %m, %c0) {dims = array<i32: 1>, padding = 0 : i8, options = {}} : (!bytes, index, index) -> tensor<1024xi8>
  %w = arith.sitofp %b : tensor<1024xi8> to tensor<1024xf32>
  %g = "tile.reshape"(%w) : (tensor<1024xf32>) -> tensor<16x64xf32>
  %a = "tile.load"(%scales, %m, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!column, index, index) -> tensor<16xf32>
  %s = "tile.broadcast"(%a) {dims = array<i32: 0>} : (tensor<16xf32>) -> tensor<16x64xf32>
  %p = arith.mulf %g, %s : tensor<16x64xf32>
  %f = "tile.reshape"(%p) : (tensor<16x64xf32>) -> tensor<1024xf32>
  %h = arith.truncf %f : tensor<1024xf32> to tensor<1024xf16>
  "tile.store"(%h, %y, %m, %c0) {dims = array<i32: 1>, options = {}} : (tensor<1024xf16>, !halves, index, index) -> ()
  return
}
