// What 32 bits may not hold is i64; a coordinate that leaves them is clamped to stay outside.
// RUN: tilec opt %s --passes widen-indices --target sm_80 | filecheck %s

// CHECK-LABEL: @coordinates
func.func @coordinates(%x: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c85899346 = arith.constant 85899346 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[P:.*]] : index to i64
  // CHECK: %[[FAR:.*]] = arith.muli %[[WIDE]], %{{.*}} : i64
  // CHECK: %[[LOW:.*]] = arith.minsi %[[FAR]], %{{.*}} : i64
  // CHECK-NOT: arith.maxsi
  // CHECK: %[[AT:.*]] = arith.index_cast %[[LOW]] : i64 to index
  // CHECK: "tile.load"(%{{.*}}, %[[AT]])
  %far = arith.muli %p, %c85899346 : index
  %a = "tile.load"(%x, %far) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<128xf32>
  // CHECK: arith.minsi %{{.*}} : i64
  // CHECK: arith.maxsi %{{.*}} : i64
  // CHECK: "tile.store"
  %m = arith.index_cast %n : i64 to index
  "tile.store"(%a, %x, %m) {dims = array<i32: 0>, options = {}} : (tensor<128xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  return
}

// A loop of constant steps to any i32 counts its iterations.
// CHECK-LABEL: @counted
func.func @counted(%x: memref<?xf32, strided<[1]>>, %n: i32) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %stop = arith.index_cast %n : i32 to index
  %z = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: %[[COUNT:.*]] = arith.ceildivsi
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step %c1 {
  // CHECK-NEXT: %[[AT:.*]] = arith.muli %[[I]], %c64 : index
  // CHECK-NEXT: "tile.store"(%{{.*}}, %{{.*}}, %[[AT]])
  scf.for %i = %c0 to %stop step %c64 {
    "tile.store"(%z, %x, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  }
  return
}

// One whose bounds are any i64 has an i64.
// CHECK-LABEL: @long
func.func @long(%x: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %stop = arith.index_cast %n : i64 to index
  %z = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
  scf.for %i = %c0 to %stop step %c1 {
    "tile.store"(%z, %x, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  }
  return
}

// One that ends inside an array has its start clamped: it runs as often.
// CHECK-LABEL: @bounded
func.func @bounded(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1]>>
  %start = arith.muli %p, %n : index
  %z = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: %[[LOW:.*]] = arith.minsi %{{.*}} : i64
  // CHECK: %[[START:.*]] = arith.index_cast %[[LOW]] : i64 to index
  // CHECK: scf.for %{{.*}} = %[[START]] to %{{.*}} step %c64 {
  scf.for %i = %start to %n step %c64 {
    "tile.store"(%z, %x, %i) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, memref<?xf32, strided<[1]>>, index) -> ()
  }
  return
}
