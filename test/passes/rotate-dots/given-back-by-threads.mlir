// Threads give the slot of %s back behind their wait for the second product: that wait stays in its
// iteration, as an arrival it left behind would free what the product still reads.
// RUN: tilec opt %s --passes rotate-dots --target sm_100a --num-warps 4 | filecheck %s

!ring = !gpu_tile.buffer<tensor<6x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(1,64)">>
!turned = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!part = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),16@bit)">>
!sum = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.tmem<"((16,4),64):((1@lane,32@lane),1@col)">>
!s = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!p = tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!b = !gpu_tile.barrier

// CHECK-LABEL: @two_products
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK: scf.for
// CHECK: scf.if
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %{{.*}}, %false)
// CHECK: math.exp2
// CHECK: "gpu_tile.transpose_view"
// CHECK: "gpu_tile.tcgen05_mma"
// CHECK: "gpu_tile.tcgen05_commit"(%[[DONE:[^,]*]], %[[AT:[^)]*]])
// CHECK-NEXT: "gpu_tile.barrier_wait"(%[[DONE]], %[[AT]], %
// CHECK-NEXT: "gpu_tile.barrier_arrive"
// CHECK: scf.yield
func.func @two_products(%begin: i32, %end: i32) attributes {tile.kernel} {
  %q = "gpu_tile.alloc"() {options = {}} : () -> !turned
  %ring = "gpu_tile.alloc"() {options = {}} : () -> !ring
  %sum = "gpu_tile.alloc"() {options = {}} : () -> !sum
  %done = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 1 : i32} : () -> !b
  %scored = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 1 : i32} : () -> !b
  %full = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 6 : i32} : () -> !b
  %free = "gpu_tile.barrier_init"() {count = 4 : i32, options = {}, slots = 6 : i32} : () -> !b
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  %last = scf.for %n = %begin to %end step %one iter_args(%count = %zero) -> (i32) : i32 {
    %at:2 = "gpu_tile.ring_position"(%count) {slots = 6 : i32} : (i32) -> (i32, i1)
    %k = "gpu_tile.slot"(%ring, %at#0) : (!ring, i32) -> !slot
    "gpu_tile.barrier_wait"(%full, %at#0, %at#1) : (!b, i32, i1) -> ()
    %scores = "gpu_tile.alloc"() {options = {}} : () -> !sum
    "gpu_tile.tcgen05_mma"(%q, %k, %scores, %false) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!turned, !slot, !sum, i1) -> ()
    %each:2 = "gpu_tile.ring_position"(%count) {slots = 1 : i32} : (i32) -> (i32, i1)
    "gpu_tile.tcgen05_commit"(%scored, %each#0) : (!b, i32) -> ()
    "gpu_tile.barrier_wait"(%scored, %each#0, %each#1) : (!b, i32, i1) -> ()
    %s = "gpu_tile.buffer_load"(%scores) : (!sum) -> !s
    %e = math.exp2 %s : !s
    %p = arith.truncf %e : !s to !p
    %part = "gpu_tile.alloc"() {options = {}} : () -> !part
    "gpu_tile.buffer_store"(%p, %part) : (!p, !part) -> ()
    %v = "gpu_tile.transpose_view"(%k) {permutation = array<i32: 1, 0>} : (!slot) -> !turned
    "gpu_tile.tcgen05_mma"(%part, %v, %sum, %true) {instruction = "tcgen05.m64n64k16.f32.bf16.bf16"} : (!part, !turned, !sum, i1) -> ()
    %own:2 = "gpu_tile.ring_position"(%count) {slots = 1 : i32} : (i32) -> (i32, i1)
    "gpu_tile.tcgen05_commit"(%done, %own#0) : (!b, i32) -> ()
    "gpu_tile.barrier_wait"(%done, %own#0, %own#1) : (!b, i32, i1) -> ()
    "gpu_tile.barrier_arrive"(%free, %at#0) {per = "warp"} : (!b, i32) -> ()
    %next = arith.addi %count, %one : i32
    scf.yield %next : i32
  }
  return
}
