// Loads that stay loads.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// cp.async copies 4, 8 or 16 bytes.
// CHECK-LABEL: @two_bytes_are_too_few
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @two_bytes_are_too_few(%a: !m {tile.facts = {align = 2 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 1, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
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

// A copy fills with zeros.
// CHECK-LABEL: @padding_with_ones
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @padding_with_ones(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 1.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// A zero fill has no sign.
// CHECK-LABEL: @padding_with_minus_zero
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @padding_with_minus_zero(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = -0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// A copy keeps nothing in L1.
// CHECK-LABEL: @cache_hint
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @cache_hint(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {cache = "evict_last"}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// Copies of fewer than 16 bytes go through L1, whatever the hint.
// CHECK-LABEL: @leaves_nothing_behind_in_eight_bytes
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @leaves_nothing_behind_in_eight_bytes(%a: !m {tile.facts = {align = 8 : i32, sizes = array<i32: 4, 4>, strides = array<i32: 4, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {cache = "evict_first"}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// Undemanded, a load that registers need is not copied.
// CHECK-LABEL: @used_in_registers_too
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @used_in_registers_too(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.store"(%t, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// The buffer is filled in a branch.
// CHECK-LABEL: @used_in_a_branch
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @used_in_a_branch(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %yes = arith.cmpi slt, %k, %c64 : index
    scf.if %yes {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    }
  }
  return
}

// Nothing to overlap a load outside of loops with.
// CHECK-LABEL: @no_loop
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @no_loop(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %k: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Two stores fill the buffer: a ring would be filled once.
// CHECK-LABEL: @filled_twice
// CHECK: tile.load
// CHECK-NOT: gpu_tile.cp_async
func.func @filled_twice(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
