// Copies of settled arrays get a warp of their own, which does not wait for earlier launches; each of the
// two announces its own bytes.
// RUN: tilec opt %s --passes load-early --target sm_90a --split-input-file | filecheck %s

!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!small = !gpu_tile.buffer<tensor<64x16xf16>, #gpu_tile.shared<"(64,16):(16,1)">>
!ring = !gpu_tile.buffer<tensor<4x64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!smalls = !gpu_tile.buffer<tensor<4x64x16xf16>, #gpu_tile.shared<"(64,16):(16,1)">>
!bar = !gpu_tile.barrier
!map = !gpu_tile.tensor_map
!a = memref<?x?xf16, strided<[?, 1]>>

// CHECK-LABEL: @one_of_two
// CHECK: %[[A:.*]] = "gpu_tile.make_tensor_map"(%arg0)
// CHECK: %[[B:.*]] = "gpu_tile.make_tensor_map"(%arg1)
// CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 2 : i32
// CHECK: %[[EMPTY:.*]] = "gpu_tile.barrier_init"() {count = 4 : i32
// CHECK: "gpu_tile.barrier_wait"(%[[EMPTY]]
// CHECK-NEXT: "gpu_tile.barrier_expect"(%[[FULL]], {{.*}}) {bytes = 2048 : i32}
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK-NOT: "gpu_tile.tma_load"(%[[B]],
// CHECK: "gpu_tile.tma_load"(%[[A]],
// CHECK: first_warp = 4 : i32, name = "load", registers = 40 : i32, warps = 4 : i32
// CHECK: "gpu_tile.barrier_wait"(%[[EMPTY]]
// CHECK-NEXT: "gpu_tile.barrier_expect"(%[[FULL]], {{.*}}) {bytes = 8192 : i32}
// CHECK-NOT: griddepcontrol
// CHECK-NOT: "gpu_tile.tma_load"(%[[A]],
// CHECK: "gpu_tile.tma_load"(%[[B]],
// CHECK: first_warp = 5 : i32, name = "load settled", registers = 0 : i32, warps = 1 : i32
func.func @one_of_two(%a: !a, %b: !a {tile.settled = true}) attributes {tile.kernel} {
  %map_a = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 16>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %map_b = "gpu_tile.make_tensor_map"(%b) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %full = "gpu_tile.barrier_init"() {slots = 4 : i32, count = 1 : i32, options = {offset = 65536 : i32}} : () -> !bar
  %empty = "gpu_tile.barrier_init"() {slots = 4 : i32, count = 4 : i32, options = {offset = 65568 : i32}} : () -> !bar
  %ring_a = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !smalls
  %ring_b = "gpu_tile.alloc"() {options = {offset = 32768 : i32}} : () -> !ring
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c640 = arith.constant 640 : i32
    %true = arith.constant true
    %end = scf.for %k = %c0 to %c640 step %c64 iter_args(%n = %c0) -> (i32) : i32 {
      %slot, %parity = "gpu_tile.ring_position"(%n) {slots = 4 : i32} : (i32) -> (i32, i1)
      %free = arith.xori %parity, %true : i1
      "gpu_tile.barrier_wait"(%empty, %slot, %free) : (!bar, i32, i1) -> ()
      "gpu_tile.barrier_expect"(%full, %slot) {bytes = 10240 : i32} : (!bar, i32) -> ()
      %second = arith.addi %c0, %c64 : i32
      %first = arith.cmpi slt, %k, %second : i32
      scf.if %first {
        "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
      }
      %x = "gpu_tile.slot"(%ring_a, %slot) : (!smalls, i32) -> !small
      "gpu_tile.tma_load"(%map_a, %x, %full, %slot, %c0, %k) {cache = "normal"} : (!map, !small, !bar, i32, i32, i32) -> ()
      %y = "gpu_tile.slot"(%ring_b, %slot) : (!ring, i32) -> !s
      "gpu_tile.tma_load"(%map_b, %y, %full, %slot, %c0, %k) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
      %next = arith.addi %n, %c1 : i32
      scf.yield %next : i32
    }
    gpu.yield
  }) {name = "load", first_warp = 4 : i32, warps = 4 : i32, registers = 40 : i32} : () -> ()
  return
}

// -----
!s = !gpu_tile.buffer<tensor<64x64xf16>, #gpu_tile.shared<"(64,64):(64,1)">>
!bar = !gpu_tile.barrier
!map = !gpu_tile.tensor_map
!a = memref<?x?xf16, strided<[?, 1]>>

// Where all arrays are settled the load role does not wait; who stores, does.
// CHECK-LABEL: @all
// CHECK: barrier_init"() {count = 1 : i32
// CHECK: "gpu_tile.barrier_expect"
// CHECK-NOT: griddepcontrol
// CHECK: "gpu_tile.tma_load"
// CHECK: name = "load"
// CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"}
// CHECK: name = "compute"
// CHECK-NOT: "gpu_tile.role"
func.func @all(%a: !a {tile.settled = true}) attributes {tile.kernel} {
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "none"} : (!a) -> !map
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 8192 : i32}} : () -> !bar
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !s
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    scf.for %k = %c0 to %c64 step %c64 : i32 {
      "gpu_tile.barrier_expect"(%full, %c0) {bytes = 8192 : i32} : (!bar, i32) -> ()
      %first = arith.cmpi slt, %k, %c64 : i32
      scf.if %first {
        "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
      }
      "gpu_tile.tma_load"(%map, %s, %full, %c0, %c0, %k) {cache = "normal"} : (!map, !s, !bar, i32, i32, i32) -> ()
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
