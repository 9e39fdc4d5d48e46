// A fence in front of what tells others, one behind what hears of them, and no more.
// RUN: tilec opt %s --passes fence-tensor-memory --target sm_100a --num-warps 4 | filecheck %s

!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!x = tensor<128x64xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
!bar = !gpu_tile.barrier
!ring = !gpu_tile.ring

// CHECK-LABEL: @handed_over
// CHECK: "gpu_tile.ring_wait"
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: gpu_tile.ring_release
// Nothing was touched since.
// CHECK-NEXT: gpu_tile.ring_release
func.func @handed_over(%n: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %sums = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 0 : i32}} : () -> !ring
  %s = "gpu_tile.ring_slot"(%sums, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_publish"(%sums, %s) {by = "products"} : (!ring, i32) -> ()
  %ready = "gpu_tile.ring_wait"(%sums, %n) {previous = false} : (!ring, i32) -> i32
  %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.ring_release"(%sums, %ready) {by = "warp"} : (!ring, i32) -> ()
  "gpu_tile.ring_release"(%sums, %ready) {by = "warp"} : (!ring, i32) -> ()
  return
}

// A wait for copies alone tells nothing of tensor memory, whoever releases what they filled.
// CHECK-LABEL: @copies
// CHECK: gpu_tile.ring_wait
// CHECK-NEXT: gpu_tile.buffer_load
func.func @copies(%n: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 0 : i32}} : () -> !ring
  %s = "gpu_tile.ring_slot"(%ring, %n) : (!ring, i32) -> i32
  "gpu_tile.ring_announce"(%ring, %s) {bytes = 64 : i32} : (!ring, i32) -> ()
  %full = "gpu_tile.ring_wait"(%ring, %n) {previous = false} : (!ring, i32) -> i32
  %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.ring_release"(%ring, %full) {by = "warp"} : (!ring, i32) -> ()
  return
}

// Whoever acquires a slot hears of the threads that released it.
// CHECK-LABEL: @acquired
// CHECK: gpu_tile.ring_acquire
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: gpu_tile.buffer_load
func.func @acquired(%n: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %ring = "gpu_tile.make_ring"() {slots = 1 : i32, fills = 1 : i32, releases = 4 : i32, options = {offset = 0 : i32}} : () -> !ring
  %s = "gpu_tile.ring_acquire"(%ring, %n) : (!ring, i32) -> i32
  %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.ring_release"(%ring, %s) {by = "warp"} : (!ring, i32) -> ()
  return
}

// The same with mbarriers.
// CHECK-LABEL: @written_mbarriers
// CHECK: "gpu_tile.barrier_wait"(%[[READY:.*]], %{{.*}}, %{{.*}})
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: gpu_tile.barrier_arrive
// CHECK-NEXT: gpu_tile.barrier_arrive
func.func @written_mbarriers(%p: i1, %s: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %ready = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !bar
  %taken = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 4 : i32, options = {offset = 8 : i32}} : () -> !bar
  "gpu_tile.tcgen05_commit"(%ready, %s) : (!bar, i32) -> ()
  "gpu_tile.barrier_wait"(%ready, %s, %p) : (!bar, i32, i1) -> ()
  %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  "gpu_tile.barrier_arrive"(%taken, %s) {per = "warp"} : (!bar, i32) -> ()
  "gpu_tile.barrier_arrive"(%taken, %s) {per = "warp"} : (!bar, i32) -> ()
  return
}

// CHECK-LABEL: @written_copies
// CHECK: gpu_tile.barrier_wait
// CHECK-NEXT: gpu_tile.buffer_load
func.func @written_copies(%p: i1, %s: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !bar
  "gpu_tile.barrier_expect"(%full, %s) {bytes = 64 : i32} : (!bar, i32) -> ()
  "gpu_tile.barrier_wait"(%full, %s, %p) : (!bar, i32, i1) -> ()
  %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
  return
}

// A loop's start also follows its end.
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_after"}
// CHECK-NEXT: gpu_tile.buffer_load
// CHECK-NEXT: "gpu_tile.fence"() {kind = "tcgen05_before"}
// CHECK-NEXT: gpu_tile.sync
// CHECK-NEXT: }
func.func @loop(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  scf.for %i = %c0 to %n step %c1 {
    %x = "gpu_tile.buffer_load"(%t) : (!t) -> !x
    "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  }
  return
}

// Kernels without tensor memory stay as they are.
// CHECK-LABEL: @elsewhere
// CHECK-NOT: gpu_tile.fence
// CHECK: return
func.func @elsewhere() attributes {tile.kernel} {
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  return
}
