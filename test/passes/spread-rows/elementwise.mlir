// Without reductions a program is spread over CTAs of 256 threads with a vector each; they need be no cluster.
// RUN: tilec opt %s --passes spread-rows --target sm_80 --num-warps 8 | filecheck %s
// RUN: tilec opt %s --passes spread-rows --target sm_80 --num-warps 16 | filecheck %s --check-prefix=MORE

!v = memref<?xf32, strided<[1]>>
!h = memref<?xf16, strided<[1]>>

// CHECK-LABEL: @add
// CHECK-SAME: tile.stripes = 4 : i32
// MORE-LABEL: @add
// MORE-SAME: tile.stripes = 2 : i32
func.func @add(%a: !h, %b: !v) attributes {tile.kernel} {
  // CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %{{.*}} : index
  %c4096 = arith.constant 4096 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %i = arith.muli %p, %c4096 : index
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[FIRST]]
  // CHECK: "tile.load"(%{{.*}}, %[[AT]]) {{.*}} -> tensor<1024xf16>
  %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f16, options = {}} : (!h, index) -> tensor<4096xf16>
  %y = arith.extf %x : tensor<4096xf16> to tensor<4096xf32>
  // CHECK: "tile.store"(%{{.*}}) {{.*}} : (tensor<1024xf32>
  "tile.store"(%y, %b, %i) {dims = array<i32: 0>, options = {}} : (tensor<4096xf32>, !v, index) -> ()
  return
}

// CHECK-LABEL: @a_vector_a_thread
// CHECK-NOT: tile.stripes
func.func @a_vector_a_thread(%a: !h, %b: !h) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: tensor<2048xf16>
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f16, options = {}} : (!h, index) -> tensor<2048xf16>
  "tile.store"(%x, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<2048xf16>, !h, index) -> ()
  return
}

// A loop of tiles is the author's way to share them.
// CHECK-LABEL: @in_a_loop
// CHECK-NOT: tile.stripe_id
func.func @in_a_loop(%a: !v, %b: !v, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %n step %c8192 {
    // CHECK: tensor<8192xf32>
    %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<8192xf32>
    "tile.store"(%x, %b, %i) {dims = array<i32: 0>, options = {}} : (tensor<8192xf32>, !v, index) -> ()
  }
  return
}

// Rows that begin anywhere have aligned vectors as wholes (wrap-rows).
// CHECK-LABEL: @wrapped
// CHECK-NOT: tile.stripe_id
func.func @wrapped(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: tensor<8192xf32>
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<8192xf32>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<8192xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
