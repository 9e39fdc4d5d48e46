// Inner loops that end where the outer one says, of known lengths, several, and of products stay.
// RUN: tilec opt %s --passes open-loops --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @its_own_end
// CHECK-NOT: scf.if
func.func @its_own_end(%x: !m, %y: !m, %rows: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64xf16>
  %sum = scf.for %row = %c0 to %rows step %c1 iter_args(%a = %zeros) -> (tensor<64xf16>) {
    %more = scf.for %p = %c0 to %row step %c64 iter_args(%b = %a) -> (tensor<64xf16>) {
      %t = "tile.load"(%x, %row, %p) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64xf16>
      %next = arith.addf %b, %t : tensor<64xf16>
      scf.yield %next : tensor<64xf16>
    }
    scf.yield %more : tensor<64xf16>
  }
  "tile.store"(%sum, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf16>, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @known
// CHECK-NOT: scf.if
func.func @known(%x: !m, %y: !m, %rows: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zeros = arith.constant dense<0.0> : tensor<64xf16>
  %sum = scf.for %row = %c0 to %rows step %c1 iter_args(%a = %zeros) -> (tensor<64xf16>) {
    %more = scf.for %p = %c0 to %c256 step %c64 iter_args(%b = %a) -> (tensor<64xf16>) {
      %t = "tile.load"(%x, %row, %p) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64xf16>
      %next = arith.addf %b, %t : tensor<64xf16>
      scf.yield %next : tensor<64xf16>
    }
    scf.yield %more : tensor<64xf16>
  }
  "tile.store"(%sum, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf16>, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @two
// CHECK-NOT: scf.if
func.func @two(%x: !m, %y: !m, %rows: index, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %row = %c0 to %rows step %c1 {
    scf.for %p = %c0 to %n step %c64 {
      %t = "tile.load"(%x, %row, %p) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64xf16>
      "tile.store"(%t, %y, %row, %p) {dims = array<i32: 1>, options = {}} : (tensor<64xf16>, !m, index, index) -> ()
    }
    scf.for %p = %c0 to %n step %c64 {
      %t = "tile.load"(%y, %row, %p) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<64xf16>
      "tile.store"(%t, %x, %row, %p) {dims = array<i32: 1>, options = {}} : (tensor<64xf16>, !m, index, index) -> ()
    }
  }
  return
}

// CHECK-LABEL: @products
// CHECK-NOT: scf.if
func.func @products(%x: !m, %y: !m, %z: memref<?x?xf32, strided<[?, 1]>>, %rows: index, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %sum = scf.for %row = %c0 to %rows step %c16 iter_args(%a = %zeros) -> (tensor<16x16xf32>) {
    %more = scf.for %p = %c0 to %n step %c16 iter_args(%b = %a) -> (tensor<16x16xf32>) {
      %l = "tile.load"(%x, %row, %p) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<16x16xf16>
      %r = "tile.load"(%y, %row, %p) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<16x16xf16>
      %next = "tile.dot"(%l, %r, %b) {options = {}} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf32>
      scf.yield %next : tensor<16x16xf32>
    }
    scf.yield %more : tensor<16x16xf32>
  }
  "tile.store"(%sum, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<16x16xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
