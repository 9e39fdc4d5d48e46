// Counting: behind the zeros and in front of the sums a sync, and none from iteration to iteration.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 | filecheck %s

!v = tensor<128xi32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!ok = tensor<128xi1, #gpu_tile.layout<"T(128):(1@0) V():()">>
!c = tensor<1x256xi32, #gpu_tile.layout<"T(128):(2@1) V(2):(1@1)">>
!b = !gpu_tile.buffer<tensor<1x256xi32>, #gpu_tile.shared<"(1,256):(256,1)">>

// CHECK-LABEL: @in_a_loop
func.func @in_a_loop(%v: !v, %ok: !ok, %zeros: !c, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  // CHECK-NOT: gpu_tile.sync
  // CHECK: "gpu_tile.buffer_store"
  // CHECK-NEXT: "gpu_tile.sync"
  // CHECK-NEXT: "gpu_tile.buffer_count"
  // CHECK-NEXT: "gpu_tile.sync"
  // CHECK-NEXT: "gpu_tile.buffer_load"
  // CHECK-NOT: gpu_tile.sync
  // CHECK: return
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zeros) -> (!c) {
    %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
    "gpu_tile.buffer_store"(%zeros, %b) : (!c, !b) -> ()
    "gpu_tile.buffer_count"(%v, %ok, %b) : (!v, !ok, !b) -> ()
    %h = "gpu_tile.buffer_load"(%b) : (!b) -> !c
    %t = arith.addi %s, %h : !c
    scf.yield %t : !c
  }
  return
}

// Zeros of a whole loop: one sync in front of it, none inside, where atomics need no order.
// CHECK-LABEL: @around_a_loop
func.func @around_a_loop(%v: !v, %ok: !ok, %zeros: !c, %n: index) -> !c attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK: "gpu_tile.buffer_store"
  // CHECK: "gpu_tile.sync"
  // CHECK: scf.for
  // CHECK-NOT: gpu_tile.sync
  // CHECK: }
  // CHECK: "gpu_tile.sync"
  // CHECK-NEXT: "gpu_tile.buffer_load"
  "gpu_tile.buffer_store"(%zeros, %b) : (!c, !b) -> ()
  scf.for %i = %c0 to %n step %c1 {
    "gpu_tile.buffer_count"(%v, %ok, %b) : (!v, !ok, !b) -> ()
  }
  %h = "gpu_tile.buffer_load"(%b) : (!b) -> !c
  return %h : !c
}
