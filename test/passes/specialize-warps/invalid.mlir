// Demands that cannot be met, with their reason, at the loop.
// RUN: tilec opt %s --passes specialize-warps --target sm_90a --num-warps 4 --split-input-file --verify-diagnostics

func.func @no_copies(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{warp_specialize=True was asked for, but no loop fills buffers that other warps could fill}}
  scf.for %k = %c0 to %n step %c64 {
  } {tile.warp_specialize = true}
  return
}

// -----
// What pipeline-loops has left without its stages.
func.func @nothing_runs_ahead(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{stages=3 was asked for, but its copies fill no rings that later iterations could use}}
  scf.for %k = %c0 to %n step %c64 {
  } {tile.stages = 3 : i32}
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @filled_twice(%a: !m, %o: !m, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %one = arith.constant 1 : i32
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @below {{warp_specialize=True was asked for, but a buffer is filled more than once}}
  %end = scf.for %k = %zero to %n step %step iter_args(%count = %zero) -> (i32) : i32 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    %p = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_announce"(%ring, %p) {bytes = 16384 : i32} : (!gpu_tile.ring, i32) -> ()
    "gpu_tile.tma_load"(%map, %s, %ring, %p, %zero, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !b, !gpu_tile.ring, i32, i32, i32) -> ()
    "gpu_tile.tma_load"(%map, %s, %ring, %p, %zero, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !b, !gpu_tile.ring, i32, i32, i32) -> ()
    %full = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
    %t = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%t, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  } {tile.warp_specialize = true}
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!c = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @never_waited_for(%a: !m, %o: !m, %n: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %one = arith.constant 1 : i32
  %acc = arith.constant dense<0.0> : !c
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @below {{warp_specialize=True was asked for, but nothing waits for what reads a buffer}}
  %end = scf.for %k = %zero to %n step %step iter_args(%count = %zero) -> (i32) : i32 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    %p = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_announce"(%ring, %p) {bytes = 8192 : i32} : (!gpu_tile.ring, i32) -> ()
    "gpu_tile.tma_load"(%map, %s, %ring, %p, %zero, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !b, !gpu_tile.ring, i32, i32, i32) -> ()
    %full = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
    %f = "gpu_tile.wgmma_fence"(%acc) : (!c) -> !gpu_tile.pending<!c>
    %d = "gpu_tile.wgmma"(%s, %s, %f) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!b, !b, !gpu_tile.pending<!c>) -> !gpu_tile.pending<!c>
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  } {tile.warp_specialize = true}
  return
}

// -----
!m = memref<?x?xbf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!t = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @own_ring(%a: !m, %o: !m, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %one = arith.constant 1 : i32
  %ring = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !gpu_tile.tensor_map
  // expected-error @below {{warp_specialize=True was asked for, but the kernel has rings of its own}}
  %end = scf.for %k = %zero to %n step %step iter_args(%count = %zero) -> (i32) : i32 {
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    %p = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    "gpu_tile.ring_announce"(%ring, %p) {bytes = 8192 : i32} : (!gpu_tile.ring, i32) -> ()
    "gpu_tile.tma_load"(%map, %s, %ring, %p, %zero, %k) {cache = "normal"} : (!gpu_tile.tensor_map, !b, !gpu_tile.ring, i32, i32, i32) -> ()
    %full = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
    %t = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%t, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  } {tile.warp_specialize = true}
  return
}
