// What a program loads at once in front of a reduction across warps has registers, where no fewer CTAs fit for that.
// RUN: tilec opt %s --passes room-for-loads --target sm_90a --num-warps 16 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!t = tensor<12288xf32, #gpu_tile.layout<"T(512):(4@0) V(4,6):(1@0,2048@0)">>
!l = tensor<24576xf32, #gpu_tile.layout<"T(512):(4@0) V(4,12):(1@0,2048@0)">>
!p = tensor<16xf32, #gpu_tile.layout<"T(32,16):(0,1@0) V():()">>

// Some 26 registers live at once, of which three CTAs or two may fit: another kernel is for up to two programs.
// CHECK-LABEL: @any_number
// CHECK-SAME: tile.few_programs = 2 : i32
// CHECK-NOT: tile.room_for
func.func @any_number(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
  %s = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !p
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @few
// CHECK-SAME: tile.room_for = 2 : i32
func.func @few(%a: !m, %b: !m) attributes {tile.kernel, tile.programs_per_sm = 2 : i32} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
  %s = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !p
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// One CTA more than the launch has programs would wait.
// CHECK-LABEL: @more
// CHECK-NOT: tile.room_for
func.func @more(%a: !m, %b: !m) attributes {tile.kernel, tile.programs_per_sm = 3 : i32} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
  %s = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!t) -> !p
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Some 50 registers: two CTAs fit, whatever the launch, and three do not.
// CHECK-LABEL: @certain
// CHECK-SAME: tile.room_for = 2 : i32
// CHECK-NOT: tile.few_programs
func.func @certain(%a: !m, %b: !m) attributes {tile.kernel, tile.programs_per_sm = 17 : i32} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !l
  %s = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (!l) -> !p
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!l, !m, index, index) -> ()
  return
}

// No threads meet: other warps compute while these wait.
// CHECK-LABEL: @apart
// CHECK-NOT: tile.room_for
// CHECK-NOT: tile.few_programs
func.func @apart(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}
