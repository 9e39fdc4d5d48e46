// A product of few rows that another one multiplies: both warps have it, as fragments of the other's
// lhs, and its rows' sums where the other needs them.
// RUN: tilec opt %s --passes infer-layouts,stage-operands --target sm_90a --num-warps 2 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!q = tensor<16x32xf16>
!k = tensor<32x32xf16>
!s = tensor<16x32xf32>
!o = tensor<16x128xf32>
!row = tensor<16xf32>

// CHECK-LABEL: @chained
// CHECK: "gpu_tile.mma"({{.*}}) -> tensor<16x32xf32, #gpu_tile.layout<"T(4,8,2):(2@1,1@0,0) V(2,2,4):(1@1,8@0,8@1)">>
// CHECK: tile.reduce
// CHECK: -> tensor<16xf32, #gpu_tile.layout<"T(4,8,2):(0,1@0,0) V(2):(8@0)">>
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NOT: "gpu_tile.buffer_store"(%[[P]]
// CHECK: "gpu_tile.buffer_load"({{.*}}) : {{.*}} -> tensor<32x128xf16, #gpu_tile.layout<"T(4,8,2):(2@0,1@1,64@1) V(2,2,8,2):(1@0,8@0,8@1,16@0)">>
// CHECK: "gpu_tile.mma"(%[[P]], %{{.*}}, %{{.*}}) {instruction = "mma.m16n8k16.f32.f16.f16"}
// CHECK-NOT: gpu_tile.mma
// CHECK: return
func.func @chained(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %out: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !s
  %q = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !q
  %k = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !k
  %v = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<32x128xf16>
  %s = "tile.dot"(%q, %k, %zero) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (!q, !k, !s) -> !s
  %l = "tile.reduce"(%s) ({
  ^bb0(%x: f32, %y: f32):
    %t = arith.addf %x, %y : f32
    gpu.yield %t : f32
  }) {axis = 1 : i32} : (!s) -> !row
  %acc = arith.constant dense<1.0> : !o
  %ls = "tile.broadcast"(%l) {dims = array<i32: 0>} : (!row) -> !o
  %less = arith.mulf %acc, %ls : !o
  %p = arith.truncf %s : !s to tensor<16x32xf16>
  %o = "tile.dot"(%p, %v, %less) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<16x32xf16>, tensor<32x128xf16>, !o) -> !o
  "tile.store"(%o, %out, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!o, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// All fragments of an rhs in more than a quarter of a thread's registers are too many: step by step,
// through a buffer.
// CHECK-LABEL: @large
// CHECK: "gpu_tile.mma"({{.*}}) -> tensor<16x48xf32
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: "gpu_tile.buffer_store"(%[[P]]
// CHECK-COUNT-3: "gpu_tile.mma"({{.*}}) -> tensor<16x256xf32
// CHECK: return
func.func @large(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %out: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x48xf32>
  %zeros = arith.constant dense<0.0> : tensor<16x256xf32>
  %q = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<16x16xf16>
  %k = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<16x48xf16>
  %v = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<48x256xf16>
  %s = "tile.dot"(%q, %k, %zero) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<16x16xf16>, tensor<16x48xf16>, tensor<16x48xf32>) -> tensor<16x48xf32>
  %p = arith.truncf %s : tensor<16x48xf32> to tensor<16x48xf16>
  %o = "tile.dot"(%p, %v, %zeros) {options = {instruction = "mma.m16n8k16.f32.f16.f16"}} : (tensor<16x48xf16>, tensor<48x256xf16>, tensor<16x256xf32>) -> tensor<16x256xf32>
  "tile.store"(%o, %out, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<16x256xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
