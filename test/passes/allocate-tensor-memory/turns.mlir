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

!p = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!w = tensor<128x64xbf16, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>

// Within the power of two that is taken anyway buffers of one block keep apart where they can: the
// last of the loop does not lie where the first one was read. Those of another loop do not count.
// CHECK-LABEL: @apart
// CHECK: "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32
// CHECK: [[A:%.*]] = "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK: [[P:%.*]] = "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK: [[B:%.*]] = "gpu_tile.alloc"() {options = {offset = 64 : i32}}
// CHECK: [[C:%.*]] = "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK: scf.for
// CHECK: "gpu_tile.buffer_load"([[A]])
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, [[P]])
// CHECK: "gpu_tile.buffer_load"([[B]])
// CHECK: scf.for
// CHECK: "gpu_tile.buffer_load"([[C]])
func.func @apart(%n: index, %w: !w) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = "gpu_tile.alloc"() {options = {}} : () -> !t
    %x = "gpu_tile.buffer_load"(%a) : (!t) -> !x
    %p = "gpu_tile.alloc"() {options = {}} : () -> !p
    "gpu_tile.buffer_store"(%w, %p) : (!w, !p) -> ()
    %b = "gpu_tile.alloc"() {options = {}} : () -> !t
    %y = "gpu_tile.buffer_load"(%b) : (!t) -> !x
    %v = "gpu_tile.buffer_load"(%p) : (!p) -> !w
  }
  scf.for %i = %c0 to %n step %c1 {
    %c = "gpu_tile.alloc"() {options = {}} : () -> !t
    %z = "gpu_tile.buffer_load"(%c) : (!t) -> !x
  }
  return
}
