// Bytes that lie across k, which warpgroup instructions read along k: a thread loads neighbours of 16 rows and stores
// 16 bytes of each column; eight lanes, one behind the other along k, fill all banks.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!a = memref<?x?xi8, strided<[?, 1]>>
!h = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @turned
func.func @turned(%a: !a {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                  %b: !a {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : tensor<64x128xi32>
  %ones = arith.constant dense<1> : tensor<128x128xi8>
  %sum = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %zero) -> (tensor<64x128xi32>) {
    // CHECK: %[[X:.*]] = "tile.load"(%arg0{{.*}} -> tensor<64x128xi8, #gpu_tile.layout<"T(8,16):(16@1,1@0) V(16,4):(1@1,16@0)">>
    %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!a, index, index) -> tensor<64x128xi8>
    // CHECK: %[[Y:.*]] = "tile.load"(%arg1{{.*}} -> tensor<128x128xi8, #gpu_tile.layout<"T(8,16):(16@0,8@1) V(8,16):(1@1,1@0)">>
    %y = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!a, index, index) -> tensor<128x128xi8>
    // What is computed of it stays so.
    // CHECK: arith.subi %[[Y]], {{.*}} : tensor<128x128xi8, #gpu_tile.layout<"T(8,16):(16@0,8@1) V(8,16):(1@1,1@0)">>
    %z = arith.subi %y, %ones : tensor<128x128xi8>
    %d = "tile.dot"(%x, %z, %acc) {options = {}} : (tensor<64x128xi8>, tensor<128x128xi8>, tensor<64x128xi32>) -> tensor<64x128xi32>
    scf.yield %d : tensor<64x128xi32>
  }
  return
}

// Threads with fewer bytes have fewer rows. Not an operand of 16 bits, which is read across k.
// CHECK-LABEL: @few_and_wide
func.func @few_and_wide(%a: !a {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                      %b: !a {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                      %p: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32>
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!a, index, index) -> tensor<64x32xi8>
  // CHECK: "tile.load"(%arg1{{.*}} -> tensor<32x64xi8, #gpu_tile.layout<"T(4,16,2):(4@0,4@1,16@0) V(4,4):(1@1,1@0)">>
  %y = "tile.load"(%b, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!a, index, index) -> tensor<32x64xi8>
  %d = "tile.dot"(%x, %y, %zero) {options = {}} : (tensor<64x32xi8>, tensor<32x64xi8>, tensor<64x64xi32>) -> tensor<64x64xi32>
  %q = "tile.load"(%p, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!h, index, index) -> tensor<64x128xf16>
  // CHECK: "tile.load"(%arg2{{.*}} -> tensor<128x128xf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,16):(1@1,8@0)">>
  %r = "tile.load"(%p, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!h, index, index) -> tensor<128x128xf16>
  %e = "tile.dot"(%q, %r, %zeros) {options = {}} : (tensor<64x128xf16>, tensor<128x128xf16>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return
}
