// One thread's release or acquire speaks for all: a sync between it and other accesses to arrays.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!flags = memref<?xi32, strided<[1]>>
!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!one = tensor<i32, #gpu_tile.layout<"T(128):(0) V():()">>
!yes = tensor<i1, #gpu_tile.layout<"T(128):(0) V():()">>

// CHECK-LABEL: @release
func.func @release(%a: !m, %f: !flags, %x: !t, %one: !one, %yes: !yes) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: tile.store
  // CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
  // CHECK-NEXT: tile.atomic_rmw
  // CHECK-NEXT: return
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  %old = "tile.atomic_rmw"(%one, %f, %yes, %one) {kind = "exchange", options = {}, order = "release", scope = "gpu"} : (!one, !flags, !yes, !one) -> !one
  return
}

// CHECK-LABEL: @acquire
func.func @acquire(%a: !m, %f: !flags, %one: !one, %yes: !yes) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: tile.atomic_cas
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: return
  %old = "tile.atomic_cas"(%one, %one, %f, %yes, %one) {order = "acquire", scope = "gpu"} : (!one, !one, !flags, !yes, !one) -> !one
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  %y = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
  return
}

// CHECK-LABEL: @fence
func.func @fence(%a: !m, %x: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: tile.store
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: tile.fence
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: tile.store
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  return
}

// CHECK-LABEL: @relaxed
func.func @relaxed(%a: !m, %f: !flags, %x: !t, %one: !one, %yes: !yes) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK-NOT: gpu_tile.sync
  // CHECK: return
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  %old = "tile.atomic_rmw"(%one, %f, %yes, %one) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (!one, !flags, !yes, !one) -> !one
  "tile.store"(%x, %a, %c0) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
  return
}

// The branch that orders nothing goes free; the next iteration's store waits for no sync either.
// CHECK-LABEL: @seldom
func.func @seldom(%a: !m, %f: !flags, %x: !t, %one: !one, %yes: !yes, %n: index, %p: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  // CHECK: scf.for
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: tile.atomic_rmw
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  scf.for %i = %c0 to %n step %c128 {
    %y = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !t
    scf.if %p {
      %old = "tile.atomic_rmw"(%one, %f, %yes, %one) {kind = "exchange", options = {}, order = "acq_rel", scope = "gpu"} : (!one, !flags, !yes, !one) -> !one
      "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
  }
  return
}
