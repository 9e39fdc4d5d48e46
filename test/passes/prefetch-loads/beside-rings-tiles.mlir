// A tile comes ahead, too, where the role's threads have registers for it; where several CTAs share
// the registers, what takes few of them alone.
// RUN: tilec opt %s --split-input-file --passes prefetch-loads --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @alone
// CHECK: scf.if %{{.*}} -> (tensor<64x32xf32, {{.*}}>, tensor<64x1xf32, {{.*}}>) {
// CHECK: arith.select
// CHECK: "gpu_tile.ring_wait"
// CHECK-NOT: "tile.load"
// CHECK: "tile.store"({{.*}}tensor<64x32xf32
// CHECK-NEXT: "tile.load"({{.*}}tensor<64x32xf32
// CHECK-NEXT: "tile.store"({{.*}}tensor<64x1xf32
// CHECK-NEXT: "tile.load"({{.*}}tensor<64x1xf32
// CHECK: scf.yield
func.func @alone(%x: !m, %out: !m, %lower: index, %upper: index) attributes {tile.kernel, tile.total_warps = 8 : i32} {
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
      %r = "tile.load"(%x, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      "tile.store"(%t, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!w, !m, index, index) -> ()
      "tile.store"(%r, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 240 : i32} : () -> ()
  return
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!w = tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @beside_others
// CHECK: scf.if %{{.*}} -> (tensor<64x1xf32, {{.*}}>) {
// CHECK: "gpu_tile.ring_wait"
// CHECK: "tile.load"(%{{.*}}) {{.*}} -> tensor<64x32xf32
// CHECK: "tile.load"(%{{.*}}) {{.*}} -> tensor<64x1xf32
// CHECK: scf.yield
func.func @beside_others(%x: !m, %out: !m, %lower: index, %upper: index) attributes {tile.kernel, tile.total_warps = 5 : i32} {
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
      %r = "tile.load"(%x, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      "tile.store"(%t, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!w, !m, index, index) -> ()
      "tile.store"(%r, %out, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
      %count = arith.addi %n, %one : i32
      scf.yield %count : i32
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
