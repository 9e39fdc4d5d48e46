// Every demand that cannot be met, with its reason, at the loop.
// RUN: tilec opt %s --passes pipeline-loops --target sm_80 --split-input-file --verify-diagnostics

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @no_copy(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but the loop holds no asynchronous copy of its own}}
  scf.for %k = %c0 to %n step %c64 {
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @copy_in_a_loop_inside(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but the loop holds no asynchronous copy of its own}}
  scf.for %k = %c0 to %n step %c64 {
    scf.for %j = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    }
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @buffer_from_outside(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  %s = "gpu_tile.alloc"() {options = {}} : () -> !b
  // expected-error @below {{stages=4 was asked for, but a copy fills a buffer from outside the loop}}
  scf.for %k = %c0 to %n step %c64 {
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @in_place(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but 'tile.store' in the loop writes an array that a copy reads}}
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %a, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @fence(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but 'tile.fence' in the loop orders memory accesses}}
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.fence"() {order = "acq_rel", scope = "sys"} : () -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @opaque(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but 'tile.inline_ptx' in the loop may write memory}}
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.inline_ptx"() {text = "membar.gl;", constraints = "", pure = false, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @address_from_a_tile(%a: !m, %p: memref<?xi32, strided<[1]>>, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but an address depends on 'tile.reduce' in the loop}}
  scf.for %k = %c0 to %n step %c64 {
    %e = "tile.load"(%p, %k) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<128xi32, #gpu_tile.layout<"T(128):(1@0) V():()">>
    %m = "tile.reduce"(%e) ({
    ^bb0(%x: i32, %y: i32):
      %z = arith.maxsi %x, %y : i32
      gpu.yield %z : i32
    }) {axis = 0 : i32} : (tensor<128xi32, #gpu_tile.layout<"T(128):(1@0) V():()">>) -> tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
    %i = tensor.extract %m[] : tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
    %at = arith.index_cast %i : i32 to index
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %at) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @address_from_memory(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but an address depends on 'tile.load', and 'tile.store' in the loop writes an array that a copy reads}}
  scf.for %k = %c0 to %n step %c64 {
    %e = "tile.load"(%o, %c0, %k) {dims = array<i32>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<f16, #gpu_tile.layout<"T(128):(0) V():()">>
    %x = tensor.extract %e[] : tensor<f16, #gpu_tile.layout<"T(128):(0) V():()">>
    %i = arith.fptosi %x : f16 to i32
    %at = arith.index_cast %i : i32 to index
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %at) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 4 : i32}
  return
}

// -----
!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
func.func @address_carried(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  // expected-error @below {{stages=4 was asked for, but an address depends on a loop-carried value}}
  %last = scf.for %k = %c0 to %n step %c64 iter_args(%at = %c0) -> (index) {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %at) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    %next = arith.addi %at, %k : index
    scf.yield %next : index
  } {tile.stages = 4 : i32}
  return
}
