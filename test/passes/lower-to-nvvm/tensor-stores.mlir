// Stores to tensor memory next to each other share one wait; a load from where one of them stored,
// and anything that tells others, comes behind it.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 4 | filecheck %s

!t = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>

// CHECK-LABEL: llvm.func @stores
func.func @stores() attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {offset = 64 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %u = "gpu_tile.alloc"() {options = {offset = 16 : i32}} : () -> !t
  %x = arith.constant dense<1.0> : !l
  // CHECK: tcgen05.st
  // CHECK-NOT: wait::st
  "gpu_tile.buffer_store"(%x, %t) : (!l, !t) -> ()
  // CHECK: tcgen05.ld
  // CHECK: wait::ld
  %y = "gpu_tile.buffer_load"(%u) : (!t) -> !l
  %z = arith.addf %x, %y : !l
  // CHECK: tcgen05.st
  // CHECK: wait::st
  "gpu_tile.buffer_store"(%z, %u) : (!l, !t) -> ()
  // CHECK: tcgen05.ld
  %w = "gpu_tile.buffer_load"(%u) : (!t) -> !l
  // CHECK: tcgen05.st
  // CHECK: wait::st
  "gpu_tile.buffer_store"(%w, %t) : (!l, !t) -> ()
  // CHECK: nvvm.barrier
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  // CHECK: tcgen05.st
  // CHECK: wait::st
  "gpu_tile.buffer_store"(%w, %u) : (!l, !t) -> ()
  "gpu_tile.release_tensor_memory"() {columns = 64 : i32} : () -> ()
  return
}
