// Where stages are demanded, loads that registers need are copied and read back.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @registers_only
// CHECK: %[[S:.*]] = "gpu_tile.alloc"()
// CHECK: "gpu_tile.cp_async"(%{{.*}}, %[[S]], %true
// CHECK: gpu_tile.cp_async_commit
// CHECK-NEXT: gpu_tile.cp_async_wait
// CHECK-NEXT: %[[T:.*]] = "gpu_tile.buffer_load"(%[[S]])
// CHECK-NEXT: "tile.store"(%[[T]]
func.func @registers_only(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    "tile.store"(%t, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 2 : i32}
  return
}

// The buffer another op fills serves both.
// CHECK-LABEL: @buffer_and_registers
// CHECK: gpu_tile.alloc
// CHECK-NOT: gpu_tile.alloc
// CHECK: gpu_tile.buffer_load
// CHECK-NOT: gpu_tile.alloc
func.func @buffer_and_registers(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.store"(%t, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 2 : i32}
  return
}

// One stage is no demand for copies.
// CHECK-LABEL: @one_stage
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @one_stage(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    "tile.store"(%t, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 1 : i32}
  return
}
