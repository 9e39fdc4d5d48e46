// Lanes lie along the dimension whose neighbours are neighbours in memory in most places, although no
// access may move two of them: pixels of a picture, of which each row ends somewhere.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!a = memref<?xbf16, strided<[1]>>
!t = tensor<64x32xi32>
!n = tensor<64xi32>

// The pixel before the image, row by row: planes lie farther apart than columns.
// CHECK-LABEL: @pixels
// CHECK: "tile.gather"{{.*}} {options = {}}
// CHECK-SAME: -> tensor<64x32xbf16, #gpu_tile.layout<"T(64,2):(1@0,1@1) V(16):(2@1)">>
func.func @pixels(%a: !a, %out: !a, %width: i32, %plane: i32) attributes {tile.kernel} {
  %all = arith.constant dense<true> : tensor<64x32xi1>
  %zero = arith.constant dense<0.0> : tensor<64x32xbf16>
  %one = arith.constant dense<1> : !n
  %n = "tile.iota"() {axis = 0 : i32} : () -> !n
  %w = tensor.splat %width : !n
  %quotient = arith.divsi %n, %w : !n
  %rest = arith.remsi %n, %w : !n
  %x = arith.subi %rest, %one : !n
  %row = arith.muli %quotient, %w : !n
  %pixel = arith.addi %row, %x : !n
  %channel = "tile.iota"() {axis = 0 : i32} : () -> tensor<32xi32>
  %p = tensor.splat %plane : tensor<32xi32>
  %planes = arith.muli %channel, %p : tensor<32xi32>
  %i = "tile.broadcast"(%pixel) {dims = array<i32: 0>} : (!n) -> !t
  %j = "tile.broadcast"(%planes) {dims = array<i32: 1>} : (tensor<32xi32>) -> !t
  %k = arith.addi %i, %j : !t
  %got = "tile.gather"(%a, %all, %zero, %k) {options = {}} : (!a, tensor<64x32xi1>, tensor<64x32xbf16>, !t) -> tensor<64x32xbf16>
  "tile.scatter"(%got, %out, %all, %k) {options = {}} : (tensor<64x32xbf16>, !a, tensor<64x32xi1>, !t) -> ()
  return
}

// Where neighbours are eight elements apart along one dimension, and many along the other.
// CHECK-LABEL: @interleaved
// CHECK: "tile.gather"{{.*}} {options = {}}
// CHECK-SAME: -> tensor<64x32xbf16, #gpu_tile.layout<"T(64,2):(1@0,1@1) V(16):(2@1)">>
func.func @interleaved(%a: !a, %out: !a) attributes {tile.kernel} {
  %all = arith.constant dense<true> : tensor<64x32xi1>
  %zero = arith.constant dense<0.0> : tensor<64x32xbf16>
  %eight = arith.constant dense<8> : !t
  %far = arith.constant dense<1000> : !t
  %r = "tile.iota"() {axis = 0 : i32} : () -> !t
  %c = "tile.iota"() {axis = 1 : i32} : () -> !t
  %i = arith.muli %r, %eight : !t
  %j = arith.muli %c, %far : !t
  %k = arith.addi %i, %j : !t
  %got = "tile.gather"(%a, %all, %zero, %k) {options = {}} : (!a, tensor<64x32xi1>, tensor<64x32xbf16>, !t) -> tensor<64x32xbf16>
  "tile.scatter"(%got, %out, %all, %k) {options = {}} : (tensor<64x32xbf16>, !a, tensor<64x32xi1>, !t) -> ()
  return
}

// Strides that only the launch knows: a multiple of 16 is no less than that.
// CHECK-LABEL: @strides
// CHECK: "tile.load"{{.*}} -> tensor<32x64xbf16, #gpu_tile.layout<"T(32,4):(1@0,1@1) V(16):(4@1)">>
func.func @strides(%w: memref<?x?xbf16, strided<[?, ?]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 1, 16>}}, %out: memref<?x?xbf16, strided<[?, ?]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 1, 16>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%w, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, ?]>>, index, index) -> tensor<32x64xbf16>
  "tile.store"(%x, %out, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<32x64xbf16>, memref<?x?xbf16, strided<[?, ?]>>, index, index) -> ()
  return
}

// Places that memory says lie anywhere: lanes lie as the store wants it, 16 bytes each, behind the reshape, too.
// CHECK-LABEL: @anywhere
// CHECK: "tile.gather"{{.*}} -> tensor<16x64xf32, #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">>
// CHECK-NOT: convert_layout
func.func @anywhere(%codes: memref<?xi8, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}}, %table: memref<16xf32, strided<[1]>>, %out: memref<?xbf16, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<16x64xi1>
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %code = "tile.load"(%codes, %c0) {dims = array<i32: 0>, padding = 0 : i8, options = {}} : (memref<?xi8, strided<[1]>>, index) -> tensor<1024xi8>
  %rows = "tile.reshape"(%code) : (tensor<1024xi8>) -> tensor<16x64xi8>
  %at = arith.extui %rows : tensor<16x64xi8> to tensor<16x64xi32>
  %got = "tile.gather"(%table, %all, %zero, %at) {options = {}} : (memref<16xf32, strided<[1]>>, tensor<16x64xi1>, tensor<16x64xf32>, tensor<16x64xi32>) -> tensor<16x64xf32>
  %flat = "tile.reshape"(%got) : (tensor<16x64xf32>) -> tensor<1024xf32>
  %y = arith.truncf %flat : tensor<1024xf32> to tensor<1024xbf16>
  "tile.store"(%y, %out, %c0) {dims = array<i32: 0>, options = {}} : (tensor<1024xbf16>, memref<?xbf16, strided<[1]>>, index) -> ()
  return
}
