// Loops of one step, and loops whose slots are read behind the last product, stay as they are.
// RUN: tilec opt %s --target sm_80 > %t.before
// RUN: tilec opt %s --passes prefetch-fragments --target sm_80 | diff %t.before -

!m = memref<?x?xf16, strided<[?, 1]>>
!slots = !gpu_tile.buffer<tensor<3x16x32xf16>, #gpu_tile.shared<"S<2,4,3> o (16,32):(32,1)">>
!slot = !gpu_tile.buffer<tensor<16x32xf16>, #gpu_tile.shared<"S<2,4,3> o (16,32):(32,1)">>
!part = !gpu_tile.buffer<tensor<16x16xf16>, #gpu_tile.shared<"S<2,4,3> o (16,32):(32,1)">>
!lhs = tensor<16x16xf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>
!rhs = tensor<16x8xf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>
!acc = tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>

func.func @one_step(%a: !m, %n: index) -> !acc attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %yes = arith.constant true
  %b = arith.constant dense<1.0> : !rhs
  %init = arith.constant dense<0.0> : !acc
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %all = "gpu_tile.alloc"() {options = {}} : () -> !slots
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %init, %count = %z) -> (!acc, i32) {
    "gpu_tile.cp_async_wait"() {pending = 1 : i32} : () -> ()
    %p = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    %s = "gpu_tile.slot"(%all, %p) : (!slots, i32) -> !slot
    %v0 = "gpu_tile.view"(%s, %z, %z) : (!slot, i32, i32) -> !part
    %f0 = "gpu_tile.buffer_load"(%v0) : (!part) -> !lhs
    %d0 = "gpu_tile.mma"(%f0, %b, %acc) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!lhs, !rhs, !acc) -> !acc
    %later = arith.addi %count, %two : i32
    %pl = "gpu_tile.ring_slot"(%ring, %later) : (!gpu_tile.ring, i32) -> i32
    %sl = "gpu_tile.slot"(%all, %pl) : (!slots, i32) -> !slot
    "gpu_tile.cp_async"(%a, %sl, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !slot, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %d0, %next : !acc, i32
  }
  return %r#0 : !acc
}

func.func @read_behind(%a: !m, %n: index) -> !acc attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %c16 = arith.constant 16 : i32
  %yes = arith.constant true
  %b = arith.constant dense<1.0> : !rhs
  %init = arith.constant dense<0.0> : !acc
  %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 0 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %all = "gpu_tile.alloc"() {options = {}} : () -> !slots
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %init, %count = %z) -> (!acc, i32) {
    "gpu_tile.cp_async_wait"() {pending = 1 : i32} : () -> ()
    %p = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    %s = "gpu_tile.slot"(%all, %p) : (!slots, i32) -> !slot
    %v0 = "gpu_tile.view"(%s, %z, %z) : (!slot, i32, i32) -> !part
    %f0 = "gpu_tile.buffer_load"(%v0) : (!part) -> !lhs
    %d0 = "gpu_tile.mma"(%f0, %b, %acc) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!lhs, !rhs, !acc) -> !acc
    %later = arith.addi %count, %two : i32
    %pl = "gpu_tile.ring_slot"(%ring, %later) : (!gpu_tile.ring, i32) -> i32
    %sl = "gpu_tile.slot"(%all, %pl) : (!slots, i32) -> !slot
    "gpu_tile.cp_async"(%a, %sl, %yes, %c0, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (!m, !slot, i1, index, index) -> ()
    "gpu_tile.cp_async_commit"() : () -> ()
    %d1 = "gpu_tile.mma"(%f0, %b, %d0) {instruction = "mma.m16n8k16.f32.f16.f16"} : (!lhs, !rhs, !acc) -> !acc
    %v1 = "gpu_tile.view"(%s, %z, %c16) : (!slot, i32, i32) -> !part
    %f1 = "gpu_tile.buffer_load"(%v1) : (!part) -> !lhs
    "gpu_tile.buffer_store"(%f1, %v0) : (!lhs, !part) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %d1, %next : !acc, i32
  }
  return %r#0 : !acc
}
