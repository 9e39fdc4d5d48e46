// While loops that stay: without a product, with a condition that needs a tile or what the kernel
// writes.
// RUN: tilec opt %s --passes count-loops --target sm_90a | filecheck %s

// CHECK-LABEL: func.func @search
// CHECK: scf.while
// CHECK-NOT: scf.for
func.func @search(%t: memref<?xi32, strided<[1]>>, %high: index) -> index attributes {tile.kernel} {
  %c0 = arith.constant 0 : index   %c1 = arith.constant 1 : index
  %r = scf.while (%k = %c0) : (index) -> index {
    %in = arith.cmpi slt, %k, %high : index
    scf.condition(%in) %k : index
  } do {
  ^bb0(%k: index):
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }
  return %r : index
}

// CHECK-LABEL: func.func @tile_decides
// CHECK: scf.while
// CHECK-NOT: scf.for
func.func @tile_decides(%x: tensor<64x64xbf16>, %most: f32, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %r = scf.while (%acc = %zero) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    %one = tensor.extract %acc[%c0, %c0] : tensor<64x64xf32>
    %in = arith.cmpf olt, %one, %most : f32
    scf.condition(%in) %acc : tensor<64x64xf32>
  } do {
  ^bb0(%acc: tensor<64x64xf32>):
    %d = "tile.dot"(%x, %x, %acc) {options = {}} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @written
// CHECK: scf.while
// CHECK-NOT: scf.for
func.func @written(%x: tensor<64x64xbf16>, %t: memref<?xi32, strided<[1]>>, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {tile.kernel} {
  %c0 = arith.constant 0 : index   %n0 = arith.constant 0 : i32
  %none = arith.constant dense<0> : tensor<1xi32>
  %r = scf.while (%acc = %zero) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    %one = "tile.load"(%t, %c0) {dims = array<i32>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32>
    %flag = tensor.extract %one[] : tensor<i32>
    %in = arith.cmpi ne, %flag, %n0 : i32
    scf.condition(%in) %acc : tensor<64x64xf32>
  } do {
  ^bb0(%acc: tensor<64x64xf32>):
    %d = "tile.dot"(%x, %x, %acc) {options = {}} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    "tile.store"(%none, %t, %c0) {dims = array<i32: 0>, options = {}} : (tensor<1xi32>, memref<?xi32, strided<[1]>>, index) -> ()
    scf.yield %d : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
