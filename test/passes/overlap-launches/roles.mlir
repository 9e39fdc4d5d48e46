// A kernel with roles waits for earlier launches in front of its first access to global memory, each
// role by itself, and lets the next one in where shared memory has no room for it anyway.
// RUN: tilec opt %s --passes overlap-launches --target sm_90a --split-input-file | filecheck %s

!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!ring = !gpu_tile.ring
!t = tensor<64x64xf16, #gpu_tile.layout<"T(16,8):(4@0,8@1) V(4,8):(1@0,1@1)">>

// CHECK-LABEL: @fills_a_multiprocessor
// CHECK: "gpu_tile.alloc"
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
// CHECK-NEXT: "gpu_tile.role"
// CHECK: scf.for %[[K:[^ ]*]] = %[[LOW:[^ ]*]] to %{{.*}} step %[[STEP:[^ ]*]]
// CHECK: "gpu_tile.ring_acquire"
// CHECK-NEXT: "gpu_tile.ring_announce"
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[LOW]], %[[STEP]]
// CHECK-NEXT: %[[BEGINS:.*]] = arith.cmpi slt, %[[K]], %[[SECOND]]
// CHECK-NEXT: scf.if %[[BEGINS]] {
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NEXT: }
// CHECK-NEXT: "gpu_tile.tma_load"
// CHECK-NEXT: "gpu_tile.tma_load"
// CHECK: name = "load"
// CHECK: memref.dim
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NEXT: "tile.load"
// CHECK-NOT: griddepcontrol
func.func @fills_a_multiprocessor(%a: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel, tile.shared_bytes = 131072 : i32} {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (memref<?x?xf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 8192 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %c640 = arith.constant 640 : i32
    scf.for %k = %c0 to %c640 step %c64 : i32 {
      %slot = "gpu_tile.ring_acquire"(%ring, %c0) : (!ring, i32) -> i32
      "gpu_tile.ring_announce"(%ring, %slot) {bytes = 16384 : i32} : (!ring, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %slot, %c0, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !s, !ring, i32, i32, i32) -> ()
      "gpu_tile.tma_load"(%map, %s, %ring, %slot, %c0, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !s, !ring, i32, i32, i32) -> ()
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : index
    %m = memref.dim %a, %c0 : memref<?x?xf16, strided<[?, 1]>>
    %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> !t
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!ring = !gpu_tile.ring

// A load role that reads memory in another way waits before all of it.
// CHECK-LABEL: @reads_a_number
// CHECK: "gpu_tile.role"
// CHECK-NOT: tile.load
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NEXT: "tile.load"
// CHECK: "gpu_tile.tma_load"
// CHECK-NOT: griddepcontrol
func.func @reads_a_number(%a: memref<?x?xf16, strided<[?, 1]>>, %n: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.shared_bytes = 131072 : i32} {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (memref<?x?xf16, strided<[?, 1]>>) -> !gpu_tile.tensor_map
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 1 : i32, options = {offset = 8192 : i32}} : () -> !ring
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %i = arith.constant 0 : index
    %x = "tile.load"(%n, %i) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
    %k = tensor.extract %x[] : tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
    %slot = "gpu_tile.ring_slot"(%ring, %c0) : (!ring, i32) -> i32
    "gpu_tile.tma_load"(%map, %s, %ring, %slot, %c0, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !s, !ring, i32, i32, i32) -> ()
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!t = tensor<64x64xf16, #gpu_tile.layout<"T(16,8):(4@0,8@1) V(4,8):(1@0,1@1)">>

// A load in front of the roles waits, too; a small kernel leaves the next one where it is.
// CHECK-LABEL: @small
// CHECK: memref.dim
// CHECK-NEXT: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NEXT: "tile.load"
// CHECK-NOT: griddepcontrol
func.func @small(%a: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel, tile.shared_bytes = 65536 : i32} {
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16, strided<[?, 1]>>
  %x = "tile.load"(%a, %m, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> !t
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
// A program that has its own is left alone.
// CHECK-LABEL: @again
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NOT: griddepcontrol
func.func @again() attributes {tile.kernel, tile.shared_bytes = 131072 : i32} {
  "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
  "gpu_tile.role"() ({
    gpu.yield
  }) {name = "load", first_warp = 0 : i32, warps = 4 : i32, registers = 0 : i32} : () -> ()
  return
}
