// Ids times tiles: the launcher keeps the grid below the limit. Kernels of 64-bit indices.
// RUN: tilec opt %s --passes widen-indices --target sm_80 | filecheck %s

// CHECK: func.func @tiles({{.*}}tile.most_programs = 33554432 : i32
// CHECK-NOT: i64
// CHECK: "tile.load"
func.func @tiles(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c64 = arith.constant 64 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %p, %c64 : index
  %a = "tile.load"(%x, %m) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<64xf32>
  "tile.store"(%a, %x, %m) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// What is computed of sizes alone is the launcher's to look at.
// CHECK: func.func @sizes({{.*}}tile.limits = {{\[\[}}"(arg0.shape[0] * arg0.shape[1])", 2147418112]
// CHECK-NOT: i64
// CHECK: "tile.load"
func.func @sizes(%x: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  %n = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %all = arith.muli %m, %n : index
  %a = "tile.load"(%x, %c0, %all) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<64xf32>
  "tile.store"(%a, %x, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK: func.func @wide
// CHECK: arith.muli %{{.*}} : index
func.func @wide(%x: memref<?xf32, strided<[1]>>, %n: index) attributes {tile.kernel, tile.index_bits = 64 : i32} {
  %m = arith.muli %n, %n : index
  %a = "tile.load"(%x, %m) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<64xf32>
  "tile.store"(%a, %x, %m) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// Programs that came through spread-rows and wrap-rows: few stripes, and a shift of a few elements.
// CHECK-LABEL: @stripes_and_shifts
// CHECK-NOT: i64
func.func @stripes_and_shifts(%a: memref<?x?xf32, strided<[?, 1]>>, %row: index) attributes {tile.kernel, tile.index_bits = 32 : i32, tile.stripes = 8 : i32} {
  %c0 = arith.constant 0 : index
  %size = arith.constant 1048576 : index
  %stripe = "tile.stripe_id"() : () -> index
  %first = arith.muli %stripe, %size : index
  %shift = "tile.misalignment"(%a, %c0, %c0) {bytes = 32 : i32} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> index
  %begin = arith.subi %first, %shift : index
  %x = "tile.load"(%a, %c0, %begin) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<32xf32>
  return
}

// A remainder is less than what it is divided by, also where its sign is the divisor's (`%` of Python): twice of it
// fits where sizes are below 2^30.
// CHECK-LABEL: @remainder
// CHECK-NOT: i64
// CHECK: "tile.load"
func.func @remainder(%x: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %n = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %r = arith.remsi %p, %n : index
  %s = arith.addi %r, %n : index
  %apart = arith.cmpi slt, %r, %c0 : index
  %m = arith.select %apart, %s, %r : index
  %two = arith.muli %m, %c2 : index
  %at = arith.addi %two, %c1 : index
  %a = "tile.load"(%x, %c0, %at) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<64xf32>
  "tile.store"(%a, %x, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
