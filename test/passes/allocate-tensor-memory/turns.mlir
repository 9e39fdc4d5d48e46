// Buffers that are never alive together share columns; a loop keeps what came from before it.
// RUN: tilec opt %s --passes allocate-tensor-memory --target sm_100a --num-warps 4 | filecheck %s

!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>

// CHECK-LABEL: @turns
// CHECK: "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32
// CHECK: "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK: "gpu_tile.alloc"() {options = {offset = 0 : i32}}
func.func @turns() attributes {tile.kernel} {
  %a = "gpu_tile.alloc"() {options = {}} : () -> !t
  %x = "gpu_tile.buffer_load"(%a) : (!t) -> !x
  %b = "gpu_tile.alloc"() {options = {}} : () -> !t
  %y = "gpu_tile.buffer_load"(%b) : (!t) -> !x
  return
}

// CHECK-LABEL: @carried
// CHECK: "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32
func.func @carried(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "gpu_tile.alloc"() {options = {}} : () -> !t
  scf.for %i = %c0 to %n step %c1 {
    %x = "gpu_tile.buffer_load"(%a) : (!t) -> !x
    %b = "gpu_tile.alloc"() {options = {}} : () -> !t
    %y = "gpu_tile.buffer_load"(%b) : (!t) -> !x
  }
  return
}
