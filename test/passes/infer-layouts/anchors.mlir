// Accesses to memory and matrix instructions decide how tiles lie; the others follow.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!v = memref<?xf32, strided<[1]>>
!m = memref<?x?xf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>

// 16 bytes a thread, neighbours next to each other; elementwise work keeps that.
// CHECK-LABEL: @vector
// CHECK: %[[X:.*]] = "tile.load"({{.*}} -> tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[X]] : tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
// CHECK-NEXT: "tile.store"(%[[Y]]
func.func @vector(%a: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}},
                  %b: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %y = arith.mulf %x, %x : tensor<1024xf32>
  "tile.store"(%y, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<1024xf32>, !v, index) -> ()
  return
}

// Without facts an access is one element wide.
// CHECK-LABEL: @unaligned
// CHECK: "tile.load"({{.*}} -> tensor<256xf32, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>
func.func @unaligned(%a: !v, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<256xf32>
  "tile.store"(%x, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<256xf32>, !v, index) -> ()
  return
}

// A sum along rows lies as the rows did, whatever is left of them in each thread.
// CHECK-LABEL: @rows
// CHECK: "tile.load"({{.*}} -> tensor<8x64xf16, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4):(1@1)">>
// CHECK: -> tensor<8xf16, #gpu_tile.layout<"T(16,8):(0,1@0) V():()">>
func.func @rows(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %o: memref<?xf16, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<8x64xf16>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f16, %q: f16):
    %r = arith.addf %p, %q : f16
    gpu.yield %r : f16
  }) {axis = 1 : i32} : (tensor<8x64xf16>) -> tensor<8xf16>
  "tile.store"(%s, %o, %c0) {dims = array<i32: 0>, options = {}} : (tensor<8xf16>, memref<?xf16, strided<[1]>>, index) -> ()
  return
}

// The accumulator is the instruction's fragment, and so is what is added to it.
// CHECK-LABEL: @dot
// CHECK: %[[D:.*]] = "tile.dot"({{.*}} -> tensor<64x64xf32, #gpu_tile.layout<"[[ACC:[^"]*]]">>
// CHECK: arith.addf %[[D]], %{{.*}} : tensor<64x64xf32, #gpu_tile.layout<"[[ACC]]">>
func.func @dot(%a: !m, %b: !m, %o: !o) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64x16xf16>
  %y = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<16x64xf16>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %one = arith.constant dense<1.0> : tensor<64x64xf32>
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = arith.addf %d, %one : tensor<64x64xf32>
  "tile.store"(%e, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf32>, !o, index, index) -> ()
  return
}
