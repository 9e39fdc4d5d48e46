// What a program loads behind its products is loaded in front of them; not what depends on them, nor
// what is written in between.
// RUN: tilec opt %s --passes hoist-loads --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!b = !gpu_tile.ring

// CHECK-LABEL: @added
// CHECK-SAME: (%[[X:.*]]: memref{{.*}}, %[[Y:.*]]: memref{{.*}}, %[[OUT:.*]]: memref
// CHECK: name = "load"
// CHECK: %[[AT:.*]] = arith.addi
// CHECK-NEXT: "tile.load"(%[[X]], %{{.*}}, %[[AT]])
// CHECK-NEXT: scf.for
// CHECK-NEXT: "gpu_tile.ring_wait"
// CHECK-NOT: "tile.load"(%[[X]]
// CHECK: "tile.store"(%{{.*}}, %[[Y]]
// CHECK: "tile.load"(%[[Y]]
// CHECK: "tile.load"(%[[X]], %{{.*}}, %{{.*}}#0
func.func @added(%x: !m, %y: !m, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %start = arith.constant dense<1.0> : !s
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 1 : i32, options = {}} : () -> !b
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 24 : i32} : () -> ()
  "gpu_tile.role"() ({
    %end:3 = scf.for %k = %lower to %upper step %c1 iter_args(%where = %c0, %n = %zero, %acc = %start) -> (index, i32, !s) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %next = arith.addf %acc, %acc : !s
      %count = arith.addi %n, %one : i32
      scf.yield %k, %count, %next : index, i32, !s
    }
    %place = arith.addi %lower, %c1 : index
    %rows = "tile.load"(%x, %c0, %place) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
    %sum = arith.addf %end#2, %rows : !s
    "tile.store"(%sum, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
    %again = "tile.load"(%y, %c0, %c1) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
    %late = "tile.load"(%x, %c0, %end#0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
    %both = arith.addf %again, %late : !s
    "tile.store"(%both, %out, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 240 : i32} : () -> ()
  return
}
