// What a computing role loads beside its rings is loaded in the iteration before, behind the use of that one's.
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!s = tensor<64x1xf32, #gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">>
!p = tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
!b = !gpu_tile.ring

// CHECK-LABEL: @scaled
// CHECK: name = "load"
// The first iteration's, if there is one.
// CHECK: %[[FIRST:.*]]:2 = scf.if %{{.*}} -> (tensor<64x1xf32, {{.*}}>, tensor<f32, {{.*}}>) {
// CHECK: "tile.load"(%{{.*}}, %{{.*}}, %[[LOWER:[^)]*]])
// CHECK: "tile.load"
// CHECK: %{{.*}}:4 = scf.for %[[K:.*]] = %{{.*}} to %[[UPPER:.*]] step %[[STEP:[^ ]*]] iter_args(%[[N:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}, %[[ROWS:.*]] = %[[FIRST]]#0, %[[ONE:.*]] = %[[FIRST]]#1)
// In the last iteration its own again.
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %[[STEP]]
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[UPPER]]
// CHECK: %[[AT:.*]] = arith.select %[[MORE]], %[[NEXT]], %[[K]]
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.ring_wait"
// CHECK-NOT: "tile.load"
// CHECK: arith.mulf %[[ACC]], %[[ROWS]]
// CHECK-NEXT: %[[R:.*]] = "tile.load"(%{{.*}}, %{{.*}}, %[[AT]])
// CHECK-NEXT: tensor.extract %[[ONE]]
// CHECK-NEXT: %[[O:.*]] = "tile.load"(%{{.*}}, %{{.*}}, %[[AT]])
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[R]], %[[O]]
func.func @scaled(%x: !m, %y: !m, %out: !m, %lower: index, %upper: index) attributes {tile.kernel} {
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
    %end:2 = scf.for %k = %lower to %upper step %c1 iter_args(%n = %zero, %acc = %start) -> (i32, !s) {
      %at = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!b, i32) -> i32
      "gpu_tile.ring_release"(%ring, %at) {by = "warpgroup"} : (!b, i32) -> ()
      %rows = "tile.load"(%x, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
      %scaled = arith.mulf %acc, %rows : !s
      %p = "tile.load"(%y, %c0, %k) {dims = array<i32>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !p
      %number = tensor.extract %p[] : !p
      %all = tensor.splat %number : !s
      %next = arith.mulf %scaled, %all : !s
      %count = arith.addi %n, %one : i32
      scf.yield %count, %next : i32, !s
    }
    "tile.store"(%end#1, %out, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!s, !m, index, index) -> ()
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 240 : i32} : () -> ()
  return
}
