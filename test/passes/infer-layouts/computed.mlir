// Tiles that no memory access holds: computing has a price, so threads do not repeat each other's.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!o = memref<?xf32, strided<[1]>>

// What is reduced to a scalar is spread over all threads, though each of them holds the scalar.
// CHECK-LABEL: @midpoints
// CHECK: arith.mulf {{.*}} : tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
// CHECK: -> tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
func.func @midpoints(%o: !o) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<1024xi32>
  %x = arith.sitofp %i : tensor<1024xi32> to tensor<1024xf32>
  %y = arith.mulf %x, %x : tensor<1024xf32>
  %s = "tile.reduce"(%y) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<1024xf32>) -> tensor<f32>
  "tile.store"(%s, %o, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, !o, index) -> ()
  return
}

// Rows of a thread each, where there are as many: their sums move nothing.
// CHECK-LABEL: @rows
// CHECK: math.sqrt {{.*}} : tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
// CHECK: -> tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
// CHECK-NOT: convert_layout
func.func @rows(%o: !o) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %m = "tile.iota"() {axis = 0 : i32} : () -> tensor<128x64xi32>
  %n = "tile.iota"() {axis = 1 : i32} : () -> tensor<128x64xi32>
  %mn = arith.muli %m, %n : tensor<128x64xi32>
  %x = arith.sitofp %mn : tensor<128x64xi32> to tensor<128x64xf32>
  %y = math.sqrt %x : tensor<128x64xf32>
  %s = "tile.reduce"(%y) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32>
  "tile.store"(%s, %o, %c0) {dims = array<i32: 0>, options = {}} : (tensor<128xf32>, !o, index) -> ()
  return
}

// Fewer elements than threads: the threads left over hold copies.
// CHECK-LABEL: @small
// CHECK: arith.sitofp {{.*}} to tensor<32xf32, #gpu_tile.layout<"T(32,4):(1@0,0) V():()">>
func.func @small(%o: !o) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<32xi32>
  %x = arith.sitofp %i : tensor<32xi32> to tensor<32xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<32xf32>) -> tensor<f32>
  "tile.store"(%s, %o, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, !o, index) -> ()
  return
}

// A row that every warp needs whole: a comparison is repeated, a sine is not.
// CHECK-LABEL: @repeated
// CHECK: math.sin {{.*}} : tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
// CHECK: arith.cmpi {{.*}} : tensor<256xi32, #gpu_tile.layout<"T(32,4):(4@0,0) V(4,2):(1@0,128@0)">>
// CHECK: "gpu_tile.convert_layout"{{.*}} : (tensor<256xf32, 
// CHECK-NOT: convert_layout
func.func @repeated(%a: memref<?x?xf32, strided<[?, 1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<256xi32>
  %f = arith.sitofp %i : tensor<256xi32> to tensor<256xf32>
  %sin = math.sin %f : tensor<256xf32>
  %end = tensor.splat %n : tensor<256xi32>
  %in = arith.cmpi slt, %i, %end : tensor<256xi32>
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<4x256xf32>
  %wide = "tile.broadcast"(%sin) {dims = array<i32: 1>} : (tensor<256xf32>) -> tensor<4x256xf32>
  %all = "tile.broadcast"(%in) {dims = array<i32: 1>} : (tensor<256xi1>) -> tensor<4x256xi1>
  %y = arith.mulf %x, %wide : tensor<4x256xf32>
  %z = arith.select %all, %y, %x : tensor<4x256xi1>, tensor<4x256xf32>
  %s = "tile.reduce"(%z) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<4x256xf32>) -> tensor<4xf32>
  "tile.store"(%z, %a, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<4x256xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Rows of a thread each need whole columns of everything along them: cheaper computed in each
// thread than read from shared memory as often.
// CHECK-LABEL: @whole
// CHECK: arith.cmpi {{.*}} : tensor<128xi32, #gpu_tile.layout<"T(128):(0) V(128):(1@0)">>
// CHECK: arith.sitofp {{.*}} to tensor<128xf32, #gpu_tile.layout<"T(128):(0) V(128):(1@0)">>
// CHECK-NOT: convert_layout
func.func @whole(%o: !o, %start: i32, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<128xi32>
  %first = tensor.splat %start : tensor<128xi32>
  %end = tensor.splat %n : tensor<128xi32>
  %at = arith.addi %first, %i : tensor<128xi32>
  %in = arith.cmpi slt, %at, %end : tensor<128xi32>
  %f = arith.sitofp %i : tensor<128xi32> to tensor<128xf32>
  %x = "tile.broadcast"(%f) {dims = array<i32: 1>} : (tensor<128xf32>) -> tensor<128x128xf32>
  %all = "tile.broadcast"(%in) {dims = array<i32: 1>} : (tensor<128xi1>) -> tensor<128x128xi1>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %z = arith.select %all, %x, %zero : tensor<128x128xi1>, tensor<128x128xf32>
  %s = "tile.reduce"(%z) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<128x128xf32>) -> tensor<128xf32>
  "tile.store"(%s, %o, %c0) {dims = array<i32: 0>, options = {}} : (tensor<128xf32>, !o, index) -> ()
  return
}

// Sums that a product is added to: each is computed once, in a thread, and goes by shuffles to the
// lanes that hold its row, which costs less than to compute it in all of them.
// CHECK-LABEL: @beside_a_product
// CHECK: arith.mulf {{.*}} : tensor<64x4xf32, #gpu_tile.layout<"T(64,2):(1@0,0) V(4):(1@1)">>
// CHECK: %[[E:.*]] = math.expm1
// CHECK-NEXT: gpu_tile.convert_layout"(%[[E]]) {{.*}} -> tensor<64xf32, #gpu_tile.layout<"T(4,8,2,2):(0,1@0,32@0,0) V(4):(8@0)">>
// CHECK-NOT: convert_layout
func.func @beside_a_product(%a: memref<?x?xf16, strided<[?, 1]>>, %o: memref<?x?xf32, strided<[?, 1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %m = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x4xi32>
  %n = "tile.iota"() {axis = 1 : i32} : () -> tensor<64x4xi32>
  %mn = arith.muli %m, %n : tensor<64x4xi32>
  %f = arith.sitofp %mn : tensor<64x4xi32> to tensor<64x4xf32>
  %square = arith.mulf %f, %f : tensor<64x4xf32>
  %sum = arith.addf %square, %f : tensor<64x4xf32>
  %s = "tile.reduce"(%sum) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<64x4xf32>) -> tensor<64xf32>
  %e = math.expm1 %s : tensor<64xf32>
  %wide = "tile.broadcast"(%e) {dims = array<i32: 0>} : (tensor<64xf32>) -> tensor<64x64xf32>
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<64x16xf16>
  %y = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<16x64xf16>
  %d = "tile.dot"(%x, %y, %wide) {options = {}} : (tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  "tile.store"(%d, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
