// A request by one thread, and what all threads read of its answer.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 4 | filecheck %s

!answer = !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>
!ring = !gpu_tile.buffer<tensor<2x4xi32>, #gpu_tile.shared<"(4):(1)">>

// CHECK-LABEL: llvm.func @take(
func.func @take(%slot: i32) attributes {tile.kernel, tile.persistent = "dynamic"} {
  %answers = "gpu_tile.alloc"() {options = {offset = 256 : i32}} : () -> !ring
  %asked = "gpu_tile.barrier_init"() {slots = 2 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  %answer = "gpu_tile.slot"(%answers, %slot) : (!ring, i32) -> !answer
  // CHECK: "@$2 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$0], [$1];", "r,r,b,~{memory}"
  "gpu_tile.next_program"(%answer, %asked, %slot) : (!answer, !gpu_tile.barrier, i32) -> ()
  // CHECK: ld.shared.b128 answer, [$4];
  // CHECK-SAME: clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 there, answer;
  // CHECK-SAME: @there clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {$1, $2, $3, _}, answer;
  // The reads are over before the copy engine may write there again.
  // CHECK-SAME: fence.proxy.async.shared::cta;
  // CHECK: arith.cmpi ne
  %there, %x, %y, %z = "gpu_tile.next_program_read"(%answer) : (!answer) -> (i1, i32, i32, i32)
  return
}
