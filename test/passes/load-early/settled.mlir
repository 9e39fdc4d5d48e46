// Copies of settled arrays get a warp of their own, which does not wait for earlier launches; each of the
// two announces its own bytes.
// RUN: tilec opt %s --passes load-early --target sm_90a --split-input-file | filecheck %s

!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!small = !gpu_tile.buffer<tensor<64x16xf16>, #gpu_tile.shared<"(64,16):(16,1)">>
!larges = !gpu_tile.buffer<tensor<4x64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!smalls = !gpu_tile.buffer<tensor<4x64x16xf16>, #gpu_tile.shared<"(64,16):(16,1)">>
!ring = !gpu_tile.ring
!map = !gpu_tile.tensor_map
!a = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @one_of_two
// CHECK: %[[A:.*]] = "gpu_tile.make_tensor_map"(%arg0)
// CHECK: %[[B:.*]] = "gpu_tile.make_tensor_map"(%arg1)
// CHECK: %[[RING:.*]] = "gpu_tile.make_ring"() {fills = 2 : i32, {{.*}}releases = 4 : i32
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_acquire"(%[[RING]]
// CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[SLOT]]) {bytes = 2048 : i32}
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NOT: "gpu_tile.tma_load"(%[[B]],
// CHECK: "gpu_tile.tma_load"(%[[A]],
// CHECK: first_warp = 4 : i32, name = "load", registers = 40 : i32, warps = 4 : i32
// CHECK: %[[TOO:.*]] = "gpu_tile.ring_acquire"(%[[RING]]
// CHECK-NEXT: "gpu_tile.ring_announce"(%[[RING]], %[[TOO]]) {bytes = 8192 : i32}
// CHECK-NOT: griddepcontrol
// CHECK-NOT: "gpu_tile.tma_load"(%[[A]],
// CHECK: "gpu_tile.tma_load"(%[[B]],
// CHECK: first_warp = 5 : i32, name = "load settled", registers = 0 : i32, warps = 1 : i32
func.func @one_of_two(%a: !a, %b: !a {tile.settled = true}) attributes {tile.kernel} {
  %map_a = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 16>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %map_b = "gpu_tile.make_tensor_map"(%b) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %ring = "gpu_tile.make_ring"() {slots = 4 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 65536 : i32}} : () -> !ring
  %slots_a = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !smalls
  %slots_b = "gpu_tile.alloc"() {options = {offset = 32768 : i32}} : () -> !larges
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c640 = arith.constant 640 : i32
    %end = scf.for %k = %c0 to %c640 step %c64 iter_args(%n = %c0) -> (i32) : i32 {
      %slot = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %slot) {bytes = 10240 : i32} : (!ring, i32) -> ()
      %second = arith.addi %c0, %c64 : i32
      %first = arith.cmpi slt, %k, %second : i32
      scf.if %first {
        "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
      }
      %x = "gpu_tile.slot"(%slots_a, %slot) : (!smalls, i32) -> !small
      "gpu_tile.tma_load"(%map_a, %x, %ring, %slot, %c0, %k) {cache = "normal"} : (!map, !small, !ring, i32, i32, i32) -> ()
      %y = "gpu_tile.slot"(%slots_b, %slot) : (!larges, i32) -> !s
      "gpu_tile.tma_load"(%map_b, %y, %ring, %slot, %c0, %k) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 40 : i32} : () -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!ring = !gpu_tile.ring
!map = !gpu_tile.tensor_map
!a = memref<?x?xf16, strided<[?, 1]>>

// Where all arrays are settled the load role does not wait; who stores, does.
// CHECK-LABEL: @all
// CHECK: make_ring"() {fills = 1 : i32
// CHECK: "gpu_tile.ring_announce"
// CHECK-NOT: griddepcontrol
// CHECK: "gpu_tile.tma_load"
// CHECK: name = "load"
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK: name = "compute"
// CHECK-NOT: "gpu_tile.role"
func.func @all(%a: !a {tile.settled = true}) attributes {tile.kernel} {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 8192 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    scf.for %k = %c0 to %c64 step %c64 : i32 {
      %slot = "gpu_tile.ring_acquire"(%ring, %c0) : (!ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %slot) {bytes = 8192 : i32} : (!ring, i32) -> ()
      %first = arith.cmpi slt, %k, %c64 : i32
      scf.if %first {
        "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
      }
      "gpu_tile.tma_load"(%map, %s, %ring, %slot, %c0, %k) {cache = "normal"} : (!map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
// A kernel without roles reads it like any other.
// CHECK-LABEL: @plain
// CHECK-NEXT: return
func.func @plain(%a: memref<?xf16, strided<[1]>> {tile.settled = true}) attributes {tile.kernel} {
  return
}
