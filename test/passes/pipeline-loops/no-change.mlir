// Loops that stay as they are, where no stages are demanded.
// RUN: tilec opt %s --passes pipeline-loops --target sm_80 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// Reading ahead would miss what the iterations before write.
// CHECK-LABEL: @writes_what_it_copies
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @writes_what_it_copies(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %a, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// Somebody outside the launch may write what is read after the fence.
// CHECK-LABEL: @fence
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @fence(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.fence"() {order = "acq_rel", scope = "sys"} : () -> ()
  }
  return
}

// Another program may have written what is read after the fence.
// CHECK-LABEL: @fence_between_programs
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @fence_between_programs(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
  }
  %r = arith.constant dense<0.0> : !t
  "tile.store"(%r, %a, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Text that is not pure may write anything.
// CHECK-LABEL: @opaque_instructions
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @opaque_instructions(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    "tile.inline_ptx"() {text = "membar.gl;", constraints = "", pure = false, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }
  return
}

// The address of a later iteration stands in an array that the loop writes.
// CHECK-LABEL: @address_in_a_written_array
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @address_in_a_written_array(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
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
  }
  return
}

// The program that a CTA will be handed next is not known yet.
// CHECK-LABEL: @programs_asked_for
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
func.func @programs_asked_for(%a: !m, %o: !m, %n: i32) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : i32
  %yes = arith.constant true
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %p = %first to %n step %step : i32 {
    %m = arith.muli %p, %c64 : i32
    %k = arith.index_cast %m : i32 to index
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// One stage is what the author wants.
// CHECK-LABEL: @one_stage
// CHECK-NOT: gpu_tile.slot
// CHECK: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
// CHECK-NOT: gpu_tile.slot
// CHECK: tile.stages = 1
func.func @one_stage(%a: !m, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %yes = arith.constant true
  scf.for %k = %c0 to %n step %c64 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.cp_async"(%a, %s, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !b, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    "gpu_tile.cp_async_wait"() {pending = 0 : i32} : () -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  } {tile.stages = 1 : i32}
  return
}
