// Who asks for programs must leave some: a launch of as many CTAs as run side by side has none.
// Who arrives once must be one.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 4 --split-input-file --verify-diagnostics

!answer = !gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>

func.func @k(%slot: i32) attributes {tile.kernel, tile.persistent = true} {
  %answer = "gpu_tile.alloc"() {options = {offset = 256 : i32}} : () -> !answer
  %asked = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  // expected-error @below {{'gpu_tile.next_program': the kernel must be launched with all its CTAs: tile.persistent = "dynamic"}}
  "gpu_tile.next_program"(%answer, %asked, %slot) : (!answer, !gpu_tile.barrier, i32) -> ()
  return
}

// -----
func.func @many(%slot: i32) attributes {tile.kernel} {
  %free = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !gpu_tile.barrier
  // expected-error @below {{only a role of one thread or one warp arrives once}}
  "gpu_tile.barrier_arrive"(%free, %slot) {per = "once"} : (!gpu_tile.barrier, i32) -> ()
  return
}
