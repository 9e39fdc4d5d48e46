// Requests for programs and their answers, printed as they were read.
// RUN: %roundtrip

!answer = !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>

// CHECK-LABEL: @ops
func.func @ops(%answer: !answer, %asked: !gpu_tile.barrier, %slot: i32) {
  // CHECK: "gpu_tile.next_program"(%{{.*}}, %{{.*}}, %{{.*}}) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, !gpu_tile.barrier, i32) -> ()
  "gpu_tile.next_program"(%answer, %asked, %slot) : (!answer, !gpu_tile.barrier, i32) -> ()
  // CHECK: %{{.*}}:4 = "gpu_tile.next_program_read"(%{{.*}}) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>) -> (i1, i32, i32, i32)
  %there, %x, %y, %z = "gpu_tile.next_program_read"(%answer) : (!answer) -> (i1, i32, i32, i32)
  return
}
