// A kernel without tensor memory, and one that has its columns already.
// RUN: tilec opt %s --passes allocate-tensor-memory --target sm_100a --num-warps 4 --split-input-file | filecheck %s

// CHECK-LABEL: @none
// CHECK-NOT: tensor_memory
func.func @none() attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>

// CHECK-LABEL: @again
// CHECK-COUNT-1: "gpu_tile.reserve_tensor_memory"
// CHECK-NOT: "gpu_tile.reserve_tensor_memory"
// CHECK: "gpu_tile.alloc"() {options = {offset = 16 : i32}}
// CHECK-COUNT-1: "gpu_tile.release_tensor_memory"
func.func @again() attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 0 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 16 : i32}} : () -> !t
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  "gpu_tile.release_tensor_memory"() {columns = 32 : i32} : () -> ()
  return
}
