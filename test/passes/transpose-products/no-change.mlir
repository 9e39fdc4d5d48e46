// Dots that stay: their rhs lies along k, or is read across k as it is, or turning would not serve.
// RUN: tilec opt %s --passes transpose-products --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!h = memref<?x?xbf16, strided<[?, 1]>>

// The rhs lies along k.
// CHECK-LABEL: @along
// CHECK-NOT: tile.transpose
func.func @along(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}

// So does neither: turning changes nothing.
// CHECK-LABEL: @both
// CHECK-NOT: tile.transpose
func.func @both(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %k, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}

// 16 bits are read either way.
// CHECK-LABEL: @halves
// CHECK-NOT: tile.transpose
func.func @halves(%a: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !h
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!h, index, index) -> tensor<128x32xbf16>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!h, index, index) -> tensor<32x64xbf16>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}

// Not by tensor cores.
// CHECK-LABEL: @ieee
// CHECK-NOT: tile.transpose
func.func @ieee(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {}} : (tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}

// The columns are no rows of whole instructions.
// CHECK-LABEL: @narrow
// CHECK-NOT: tile.transpose
func.func @narrow(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x72xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x72xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x72xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (tensor<128x32xf32>, tensor<32x72xf32>, tensor<128x72xf32>) -> tensor<128x72xf32>
    scf.yield %next : tensor<128x72xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x72xf32>, !m, index, index) -> ()
  return
}

// Single warps multiply, which read it themselves.
// CHECK-LABEL: @few
// CHECK-NOT: tile.transpose
func.func @few(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<32x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (tensor<32x32xf32>, tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<32x64xf32>, !m, index, index) -> ()
  return
}

// No copy engine brings rows that begin anywhere.
// CHECK-LABEL: @anywhere
// CHECK-NOT: tile.transpose
func.func @anywhere(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m , %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32"}} : (tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}

// The sum is used otherwise, too.
// CHECK-LABEL: @scaled
// CHECK-NOT: tile.transpose
func.func @scaled(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %size = memref.dim %b, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<128x64xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<128x32xf32>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32x64xf32>
    %twice = arith.addf %sum, %sum : tensor<128x64xf32>
    %next = "tile.dot"(%ta, %tb, %twice) {options = {precision = "tf32"}} : (tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<128x64xf32>, !m, index, index) -> ()
  return
}
