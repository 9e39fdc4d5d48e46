// Atomics on neighbours: a warp's instruction meets whole sectors, one element a lane. Where nothing is known of
// the places, the load of the values decides.
// What the target adds in one instruction is an access as wide, and says where its neighbours are.
// RUN: tilec opt %s --passes infer-layouts --target sm_80 | filecheck %s --check-prefixes=CHECK,PAIRS
// RUN: tilec opt %s --passes infer-layouts --target sm_90a | filecheck %s --check-prefixes=CHECK,VECTORS

!m = memref<?xi32, strided<[1]>>

// CHECK-LABEL: @counts_of_neighbours
func.func @counts_of_neighbours(%a: !m, %v: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<1024xi1>
  %x = "tile.load"(%v, %c0) {dims = array<i32: 0>, padding = -1 : i32, options = {}} : (!m, index) -> tensor<1024xi32>
  // CHECK: "tile.histogram"({{.*}}) : ({{.*}}) -> tensor<1024xi32, #gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">>
  %h = "tile.histogram"(%x, %all) : (tensor<1024xi32>, tensor<1024xi1>) -> tensor<1024xi32>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<1024xi32>
  // CHECK-NOT: convert_layout
  %old = "tile.atomic_rmw"(%h, %a, %all, %i) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (tensor<1024xi32>, !m, tensor<1024xi1>, tensor<1024xi32>) -> tensor<1024xi32>
  return
}

// CHECK-LABEL: @unknown_places
func.func @unknown_places(%a: !m, %v: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<1024xi1>
  %one = arith.constant dense<1> : tensor<1024xi32>
  // CHECK: "tile.load"({{.*}}#gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">
  %x = "tile.load"(%v, %c0) {dims = array<i32: 0>, padding = -1 : i32, options = {}} : (!m, index) -> tensor<1024xi32>
  // CHECK-NOT: convert_layout
  %old = "tile.atomic_rmw"(%one, %a, %all, %x) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (tensor<1024xi32>, !m, tensor<1024xi1>, tensor<1024xi32>) -> tensor<1024xi32>
  return
}

// CHECK-LABEL: @sums_of_neighbours
func.func @sums_of_neighbours(%a: memref<?xf16, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %all = arith.constant dense<true> : tensor<2048xi1>
  %one = arith.constant dense<1.0> : tensor<2048xf16>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<2048xi32>
  // CHECK: tile.atomic_rmw
  // CHECK-SAME: run = array<i32: 0, 8>
  // PAIRS-SAME: "T(128):(2@0) V(2,8):(1@0,256@0)"
  // VECTORS-SAME: "T(128):(8@0) V(8,2):(1@0,1024@0)"
  %old = "tile.atomic_rmw"(%one, %a, %all, %i) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (tensor<2048xf16>, memref<?xf16, strided<[1]>>, tensor<2048xi1>, tensor<2048xi32>) -> tensor<2048xf16>
  return
}

// Sums of floats that nobody reads: where one instruction adds up four neighbours, a thread holds them, and so
// do the loads beside them.
// CHECK-LABEL: @sums
// PAIRS: "tile.load"({{.*}}#gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">
// VECTORS: "tile.load"({{.*}}#gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">
// CHECK-NOT: convert_layout
func.func @sums(%a: memref<?xf32, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}, %v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<1024xi1>
  %x = "tile.load"(%v, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<1024xf32>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<1024xi32>
  %old = "tile.atomic_rmw"(%x, %a, %all, %i) {kind = "addf", options = {}, order = "acq_rel", scope = "gpu"} : (tensor<1024xf32>, memref<?xf32, strided<[1]>>, tensor<1024xi1>, tensor<1024xi32>) -> tensor<1024xf32>
  return
}
