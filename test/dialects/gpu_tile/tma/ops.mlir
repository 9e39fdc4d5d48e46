// Tensor maps and the copies through them, printed as they were read.
// RUN: %roundtrip

!m = memref<?x?xbf16, strided<[?, 1]>>
!map = !gpu_tile.tensor_map
!s = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!bar = !gpu_tile.barrier

// CHECK-LABEL: @maps
func.func @maps(%a: !m) {
  // CHECK: "gpu_tile.make_tensor_map"(%{{.*}}) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 128, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // CHECK: "gpu_tile.make_tensor_map"(%{{.*}}) {box = array<i32: 256>, dims = array<i32: 1>, swizzle = "none"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %row = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 256>, dims = array<i32: 1>, swizzle = "none"} : (!m) -> !map
  return
}

!x = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>

// CHECK-LABEL: @images
func.func @images(%x: !x, %s: !s, %bar: !bar, %slot: i32, %i: i32) {
  // CHECK: "gpu_tile.make_im2col_map"(%{{.*}}) {box = array<i32: 128, 64>, dims = array<i32: 0, 3>, extents = ["y.shape[1]", "7"], lower = array<i32: -1, 2>, steps = array<i32: 1, 8>, swizzle = "128B"} : (memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>) -> !gpu_tile.tensor_map
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 3>, extents = ["y.shape[1]", "7"], lower = array<i32: -1, 2>, steps = array<i32: 1, 8>, swizzle = "128B"} : (!x) -> !map
  // CHECK: "gpu_tile.tma_load"(%{{.*}}) {cache = "normal"} : (!gpu_tile.tensor_map, {{.*}}, !gpu_tile.barrier, i32, i32, i32, i32, i32, i32, i32) -> ()
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %i, %i, %i, %i, %i) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32, i32, i32, i32, i32) -> ()
  return
}

// CHECK-LABEL: @copies
func.func @copies(%map: !map, %s: !s, %bar: !bar, %slot: i32, %i: i32, %j: i32) {
  // CHECK: "gpu_tile.tma_load"(%{{.*}}) {cache = "normal"}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_load"(%{{.*}}) {cache = "evict_first"}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "evict_first"} : (!map, !s, !bar, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_load"(%{{.*}}) {cache = "evict_last"}
  "gpu_tile.tma_load"(%map, %s, %bar, %slot, %i, %j) {cache = "evict_last"} : (!map, !s, !bar, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_multicast"(%{{.*}}) {cache = "normal"}
  "gpu_tile.tma_multicast"(%map, %s, %bar, %slot, %i, %i, %j) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_pair_load"(%{{.*}}) {cache = "normal"}
  "gpu_tile.tma_pair_load"(%map, %s, %bar, %slot, %i, %j) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_pair_multicast"(%{{.*}}) {cache = "normal"}
  "gpu_tile.tma_pair_multicast"(%map, %s, %bar, %slot, %slot, %i, %j) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_store"(%{{.*}}) {combine = "none"}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "none"} : (!s, !map, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_store"(%{{.*}}) {combine = "add"}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "add"} : (!s, !map, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_store"(%{{.*}}) {combine = "min"}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "min"} : (!s, !map, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_store"(%{{.*}}) {combine = "max"}
  "gpu_tile.tma_store"(%s, %map, %i, %j) {combine = "max"} : (!s, !map, i32, i32) -> ()
  // CHECK: "gpu_tile.tma_commit"() : () -> ()
  "gpu_tile.tma_commit"() : () -> ()
  // CHECK: "gpu_tile.tma_wait"() {pending = 1 : i32, read = true} : () -> ()
  "gpu_tile.tma_wait"() {pending = 1 : i32, read = true} : () -> ()
  // CHECK: "gpu_tile.tma_wait"() {pending = 0 : i32, read = false} : () -> ()
  "gpu_tile.tma_wait"() {pending = 0 : i32, read = false} : () -> ()
  return
}

!acc = tensor<128x64xbf16, #gpu_tile.layout<"T(4,8,8):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>

// CHECK-LABEL: @by_warps
func.func @by_warps(%c: memref<?x?xbf16, strided<[?, 1]>>, %s: !s, %x: !acc, %i: i32, %j: i32) {
  %map = "gpu_tile.make_tensor_map"(%c) {box = array<i32: 16, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (memref<?x?xbf16, strided<[?, 1]>>) -> !map
  // CHECK: "gpu_tile.warp_tma_store"(%{{.*}}) {pending = 1 : i32}
  "gpu_tile.warp_tma_store"(%x, %s, %map, %i, %j) {pending = 1 : i32} : (!acc, !s, !map, i32, i32) -> ()
  return
}
