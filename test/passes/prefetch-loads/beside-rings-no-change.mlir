// Not loaded ahead: what the loop writes, what needs many registers, what nothing needs, addresses
// that are loaded, and loops without rings.
// RUN: tilec opt %s --split-input-file --passes prefetch-loads --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!i = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// Another thread writes what the next iteration reads.
// CHECK-LABEL: @written
// CHECK: scf.for
// CHECK: "gpu_tile.ring_wait"
// CHECK: "tile.load"
// CHECK: scf.yield %{{[^,]*}} : i32
func.func @written(%x: !m, %numbers: !n, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    %end = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero) -> (i32) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %t = "tile.load"(%x, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      %later = arith.addi %k, %c1 : index
      "tile.store"(%t, %x, %c0, %later) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!i = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// CHECK-LABEL: @wide
// CHECK: scf.for
// CHECK: "gpu_tile.ring_wait"
// CHECK: "tile.load"
// CHECK: scf.yield %{{[^,]*}} : i32
func.func @wide(%x: !m, %numbers: !n, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    %end = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero) -> (i32) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %t = "tile.load"(%x, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !w
      "tile.store"(%t, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!w, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!i = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// CHECK-LABEL: @unneeded
// CHECK: scf.for
// CHECK: "gpu_tile.ring_wait"
// CHECK: "tile.load"
// CHECK: scf.yield %{{[^,]*}} : i32
func.func @unneeded(%x: !m, %numbers: !n, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    %end = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero) -> (i32) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %t = "tile.load"(%x, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!i = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// CHECK-LABEL: @indirect
// CHECK: scf.for
// The number of the row is; what lies there is not.
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.ring_wait"
// CHECK: "tile.load"(%{{.*}}) {dims = array<i32>
// CHECK: "tile.load"(%{{.*}}) {dims = array<i32: 0, 1>
func.func @indirect(%x: !m, %numbers: !n, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    %end = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero) -> (i32) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %i = "tile.load"(%numbers, %k) {dims = array<i32>, padding = 0 : i32, options = {}} : (!n, index) -> !i
      %j = tensor.extract %i[] : !i
      %row = arith.index_cast %j : i32 to index
      %t = "tile.load"(%x, %row, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      "tile.store"(%t, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!n = memref<?xi32, strided<[1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!i = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// CHECK-LABEL: @no_ring
// CHECK: scf.for
// CHECK: "tile.load"
// CHECK: scf.yield %{{[^,]*}} : i32
func.func @no_ring(%x: !m, %numbers: !n, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    %end = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero) -> (i32) {
      %t = "tile.load"(%x, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      "tile.store"(%t, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
