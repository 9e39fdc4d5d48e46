// A product that is another's lhs keeps whole rows in each warp where there is one for 16 of them;
// with fewer rows, warps would compute those of others once more, and share the columns instead.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @few
// CHECK: "tile.dot"({{.*}} -> tensor<32x64xf32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,32@1) V(2,2,4):(1@1,8@0,8@1)">>
func.func @few(%q: !m, %k: !m, %v: !m, %o: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %a = "tile.load"(%q, %0, %0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<32x64xf16>
  %b = "tile.load"(%k, %0, %0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64x64xf16>
  %c = "tile.load"(%v, %0, %0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64x64xf16>
  %s = "tile.dot"(%a, %b, %zero) {options = {}} : (tensor<32x64xf16>, tensor<64x64xf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = arith.truncf %s : tensor<32x64xf32> to tensor<32x64xf16>
  %r = "tile.dot"(%p, %c, %zero) {options = {}} : (tensor<32x64xf16>, tensor<64x64xf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
  "tile.store"(%r, %o, %0, %0) {dims = array<i32: 0, 1>, options = {}} : (tensor<32x64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// A reduction along the rows still has them whole.
// CHECK-LABEL: @reduced
// CHECK: "tile.dot"({{.*}} -> tensor<32x64xf32, #gpu_tile.layout<"T(4,8,2,2):(2@1,1@0,16@0,0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @reduced(%q: !m, %k: !m, %o: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %a = "tile.load"(%q, %0, %0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<32x64xf16>
  %b = "tile.load"(%k, %0, %0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64x64xf16>
  %s = "tile.dot"(%a, %b, %zero) {options = {}} : (tensor<32x64xf16>, tensor<64x64xf16>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %m = "tile.reduce"(%s) ({
  ^bb0(%x: f32, %y: f32):
    %n = arith.maximumf %x, %y : f32
    gpu.yield %n : f32
  }) {axis = 1 : i32} : (tensor<32x64xf32>) -> tensor<32xf32>
  "tile.store"(%m, %o, %0) {dims = array<i32: 0>, options = {}} : (tensor<32xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
