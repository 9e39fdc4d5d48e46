// Loads, stores, gathers, scatters, atomics and fences, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @load_rows_columns_and_scalars
func.func @load_rows_columns_and_scalars(%a: memref<?x?x?xbf16, strided<[?, ?, 1]>>, %s: memref<7x5xi8>, %i: index) {
  // CHECK: "tile.load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {dims = array<i32: 2, 1>, options = {}, padding = 0.000000e+00 : bf16} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>, index, index, index) -> tensor<64x48xbf16>
  %t = "tile.load"(%a, %i, %i, %i) {dims = array<i32: 2, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>, index, index, index) -> tensor<64x48xbf16>
  // CHECK: padding = 0xFF80 : bf16
  %r = "tile.load"(%a, %i, %i, %i) {dims = array<i32: 0>, padding = 0xFF80 : bf16, options = {cache = "evict_last"}} : (memref<?x?x?xbf16, strided<[?, ?, 1]>>, index, index, index) -> tensor<3xbf16>
  // CHECK: {dims = array<i32>, options = {}, padding = -1 : i8} : (memref<7x5xi8>, index, index) -> tensor<i8>
  %x = "tile.load"(%s, %i, %i) {dims = array<i32>, padding = -1 : i8, options = {}} : (memref<7x5xi8>, index, index) -> tensor<i8>
  return
}

// CHECK-LABEL: @store
func.func @store(%a: memref<?x?xf8E5M2, strided<[1, ?]>>, %t: tensor<5x7xf8E5M2>, %i: index) {
  // CHECK: "tile.store"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {dims = array<i32: 1, 0>, options = {cache = "streaming"}} : (tensor<5x7xf8E5M2>, memref<?x?xf8E5M2, strided<[1, ?]>>, index, index) -> ()
  "tile.store"(%t, %a, %i, %i) {dims = array<i32: 1, 0>, options = {cache = "streaming"}} : (tensor<5x7xf8E5M2>, memref<?x?xf8E5M2, strided<[1, ?]>>, index, index) -> ()
  return
}

// CHECK-LABEL: @wrapped_rows
func.func @wrapped_rows(%a: memref<?x?xf16, strided<[?, 1]>>, %i: index, %j: index) {
  // CHECK: "tile.misalignment"(%{{.*}}, %{{.*}}, %{{.*}}) {bytes = 32 : i32} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> index
  %s = "tile.misalignment"(%a, %i, %j) {bytes = 32 : i32} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> index
  // CHECK: options = {wrapped = true}
  %t = "tile.load"(%a, %i, %s) {dims = array<i32: 1>, padding = 0.0 : f16, options = {wrapped = true}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<64xf16>
  // CHECK: options = {wrapped = true}
  "tile.store"(%t, %a, %i, %s) {dims = array<i32: 1>, options = {wrapped = true}} : (tensor<64xf16>, memref<?x?xf16, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK-LABEL: @inside
func.func @inside(%a: memref<?x?xf16, strided<[?, 1]>>, %i: index, %j: index) {
  // CHECK: options = {inside = true}
  %t = "tile.load"(%a, %i, %j) {dims = array<i32: 1>, padding = 0.0 : f16, options = {inside = true}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<64xf16>
  // CHECK: options = {inside = true}
  "tile.store"(%t, %a, %i, %j) {dims = array<i32: 1>, options = {inside = true}} : (tensor<64xf16>, memref<?x?xf16, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK-LABEL: @gather_and_scatter_in_two_dimensions
func.func @gather_and_scatter_in_two_dimensions(%a: memref<?x?xf64>, %ok: tensor<4x3xi1>, %other: tensor<4x3xf64>, %i: tensor<4x3xi64>, %j: tensor<4x3xi64>) {
  // CHECK: "tile.gather"(%{{.*}}) {options = {cache = "no_allocate"}} : (memref<?x?xf64>, tensor<4x3xi1>, tensor<4x3xf64>, tensor<4x3xi64>, tensor<4x3xi64>) -> tensor<4x3xf64>
  %t = "tile.gather"(%a, %ok, %other, %i, %j) {options = {cache = "no_allocate"}} : (memref<?x?xf64>, tensor<4x3xi1>, tensor<4x3xf64>, tensor<4x3xi64>, tensor<4x3xi64>) -> tensor<4x3xf64>
  // CHECK: "tile.scatter"(%{{.*}}) {options = {}} : (tensor<4x3xf64>, memref<?x?xf64>, tensor<4x3xi1>, tensor<4x3xi64>, tensor<4x3xi64>) -> ()
  "tile.scatter"(%t, %a, %ok, %i, %j) {options = {}} : (tensor<4x3xf64>, memref<?x?xf64>, tensor<4x3xi1>, tensor<4x3xi64>, tensor<4x3xi64>) -> ()
  return
}

// CHECK-LABEL: @atomics
func.func @atomics(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // CHECK: "tile.atomic_rmw"(%{{.*}}) {kind = "maxu", options = {}, order = "acq_rel", scope = "sys"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "maxu", options = {}, order = "acq_rel", scope = "sys"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  // CHECK: "tile.atomic_cas"(%{{.*}}) {order = "relaxed", scope = "cluster"} : (tensor<8xi32>, tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  %was = "tile.atomic_cas"(%v, %v, %a, %ok, %v) {order = "relaxed", scope = "cluster"} : (tensor<8xi32>, tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// CHECK-LABEL: @fence
func.func @fence() {
  // CHECK: "tile.fence"() {order = "seq_cst", scope = "cta"} : () -> ()
  "tile.fence"() {order = "seq_cst", scope = "cta"} : () -> ()
  return
}

// CHECK-LABEL: @window
func.func @window(%a: memref<?x64xf32, strided<[?, 1]>>, %first: index, %rows: index) {
  // CHECK: "tile.window"(%{{.*}}, %{{.*}}, %{{.*}}) {dim = 0 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index, index) -> memref<?x64xf32, strided<[?, 1]>>
  %w = "tile.window"(%a, %first, %rows) {dim = 0 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index, index) -> memref<?x64xf32, strided<[?, 1]>>
  // CHECK: "tile.window"(%{{.*}}, %{{.*}}) {dim = 1 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index) -> memref<?x?xf32, strided<[?, 1]>>
  %v = "tile.window"(%w, %first) {dim = 1 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index) -> memref<?x?xf32, strided<[?, 1]>>
  return
}
