// Rows that a CTA holds, and rows that cannot be spread, stay.
// RUN: tilec opt %s --passes spread-rows --target sm_90a --num-warps 32 | filecheck %s
// RUN: tilec opt %s --passes spread-rows --target sm_80 --num-warps 32 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>

// 32 words for each of 1024 threads.
// CHECK-LABEL: @fits
// CHECK-NOT: tile.stripe
func.func @fits(%a: !m, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<32768xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<32768xf32>) -> tensor<f32>
  "tile.store"(%s, %b, %row) {dims = array<i32>, options = {}} : (tensor<f32>, !v, index) -> ()
  return
}

// What a scan's step decides by a branch, no tile does element by element.
// CHECK-LABEL: @branching_scan
// CHECK-NOT: tile.stripe
func.func @branching_scan(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  %s = "tile.scan"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %is = arith.cmpf olt, %p, %q : f32
    %r = scf.if %is -> (f32) {
      scf.yield %p : f32
    } else {
      scf.yield %q : f32
    }
    gpu.yield %r : f32
  }) {axis = 0 : i32, reverse = false} : (tensor<65536xf32>) -> tensor<65536xf32>
  "tile.store"(%s, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<65536xf32>, !m, index, index) -> ()
  return
}

// CTAs meet where all of them come by as often.
// CHECK-LABEL: @reduced_in_a_loop
// CHECK-NOT: tile.stripe
func.func @reduced_in_a_loop(%a: !m, %b: !v, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %row = %c0 to %n step %c1 {
    %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
    %s = "tile.reduce"(%x) ({
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      gpu.yield %r : f32
    }) {axis = 0 : i32} : (tensor<65536xf32>) -> tensor<f32>
    "tile.store"(%s, %b, %row) {dims = array<i32>, options = {}} : (tensor<f32>, !v, index) -> ()
  }
  return
}

// A stripe would read what another may have written.
// CHECK-LABEL: @shifted_in_place
// CHECK-NOT: tile.stripe
func.func @shifted_in_place(%a: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c1) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<65536xf32>) -> tensor<f32>
  %t = "tile.broadcast"(%s) {dims = array<i32>} : (tensor<f32>) -> tensor<65536xf32>
  "tile.store"(%t, %a, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<65536xf32>, !m, index, index) -> ()
  return
}

// Each stripe would add to the sum.
// CHECK-LABEL: @atomics
// CHECK-NOT: tile.stripe
func.func @atomics(%a: !m, %b: !v, %ok: tensor<i1>, %i: tensor<i32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<65536xf32>) -> tensor<f32>
  %old = "tile.atomic_rmw"(%s, %b, %ok, %i) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (tensor<f32>, !v, tensor<i1>, tensor<i32>) -> tensor<f32>
  return
}

// A cluster that the author demands is one of programs.
// CHECK-LABEL: @demanded
// CHECK-NOT: tile.stripe
func.func @demanded(%a: !m, %b: !v) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<65536xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<65536xf32>) -> tensor<f32>
  "tile.store"(%s, %b, %row) {dims = array<i32>, options = {}} : (tensor<f32>, !v, index) -> ()
  return
}
