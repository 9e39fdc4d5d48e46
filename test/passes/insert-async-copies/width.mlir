// The widest copy the provable alignment of pointer, pitch and offset allows.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @pointer_16_pitch_16
// CHECK: bytes = 16 : i32, cache = "cg"
func.func @pointer_16_pitch_16(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @pointer_8
// CHECK: bytes = 8 : i32, cache = "ca"
func.func @pointer_8(%a: !m {tile.facts = {align = 8 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @pitch_4
// CHECK: bytes = 4 : i32, cache = "ca"
func.func @pitch_4(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 2, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// CHECK-LABEL: @pitch_8
// CHECK: bytes = 8 : i32, cache = "ca"
func.func @pitch_8(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 4, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
