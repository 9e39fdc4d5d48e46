// Shifts by more bits than a number has, or to the wrong side, give some number: nothing follows
// from one for what it divides, or for where neighbours lie.
// RUN: tilec compile %s --target sm_90a | filecheck %s
// RUN: sed 's/constant -1 : index/constant 4294967296 : index/; s/dense<-1>/dense<4294967296>/' %s > %t.mlir
// RUN: tilec compile %t.mlir --target sm_90a | filecheck %s

// CHECK: .entry shifted
// CHECK: st.global
module {
  func.func @shifted(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %bits = arith.constant -1 : index
    %n = memref.dim %x, %c0 : memref<?xf32, strided<[1]>>
    %right = arith.shrsi %n, %bits : index
    %left = arith.shli %right, %bits : index
    %at = arith.muli %left, %c64 : index
    %loaded = "tile.load"(%x, %at) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?xf32, strided<[1]>>, index) -> tensor<64xf32>
    "tile.store"(%loaded, %y, %right) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
    %all_bits = arith.constant dense<-1> : tensor<64xindex>
    %place = "tile.iota"() {axis = 0 : i32} : () -> tensor<64xi32>
    %wide = arith.index_cast %place : tensor<64xi32> to tensor<64xindex>
    %rights = arith.shrsi %wide, %all_bits : tensor<64xindex>
    %all = arith.constant dense<true> : tensor<64xi1>
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %gathered = "tile.gather"(%x, %all, %zero, %rights) {options = {}} : (memref<?xf32, strided<[1]>>, tensor<64xi1>, tensor<64xf32>, tensor<64xindex>) -> tensor<64xf32>
    "tile.store"(%gathered, %y, %c0) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
    return
  }
}
