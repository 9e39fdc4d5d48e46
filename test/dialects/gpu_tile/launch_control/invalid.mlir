// Every rule of the ops in launch_control.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @too_small_for_an_answer(%b: !gpu_tile.buffer<tensor<3xi32>, #gpu_tile.shared<"(3):(1)">>, %asked: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{'gpu_tile.next_program' op an answer is a !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>}}
  "gpu_tile.next_program"(%b, %asked, %slot) : (!gpu_tile.buffer<tensor<3xi32>, #gpu_tile.shared<"(3):(1)">>, !gpu_tile.barrier, i32) -> ()
  return
}

// -----
func.func @a_whole_ring(%b: !gpu_tile.buffer<tensor<3x4xi32>, #gpu_tile.shared<"(4):(1)">>) {
  // expected-error @below {{'gpu_tile.next_program_read' op an answer is a !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>}}
  %there, %x, %y, %z = "gpu_tile.next_program_read"(%b) : (!gpu_tile.buffer<tensor<3x4xi32>, #gpu_tile.shared<"(4):(1)">>) -> (i1, i32, i32, i32)
  return
}

// -----
func.func @in_tensor_memory(%b: !gpu_tile.buffer<tensor<128x32xi32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>) {
  // expected-error @below {{'gpu_tile.next_program_read' op expected a shared-memory buffer}}
  %there, %x, %y, %z = "gpu_tile.next_program_read"(%b) : (!gpu_tile.buffer<tensor<128x32xi32>, #gpu_tile.tmem<"(128,32):(1@lane,1@col)">>) -> (i1, i32, i32, i32)
  return
}

// -----
func.func @whether_there_is_one_is_no_number(%b: !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>) {
  // expected-error @below {{expected 'i1' but got 'i32'}}
  %there, %x, %y, %z = "gpu_tile.next_program_read"(%b) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>) -> (i32, i32, i32, i32)
  return
}
