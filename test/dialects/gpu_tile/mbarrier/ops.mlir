// Barriers in shared memory, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @ring_of_barriers
func.func @ring_of_barriers() {
  // CHECK: "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 3 : i32} : () -> !gpu_tile.barrier
  %b = "gpu_tile.barrier_init"() {slots = 3 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
  // CHECK: "gpu_tile.barrier_init"() {count = 1048575 : i32, options = {offset = 48 : i32}, slots = 1 : i32} : () -> !gpu_tile.barrier
  %c = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1048575 : i32, options = {offset = 48 : i32}} : () -> !gpu_tile.barrier
  return
}

// CHECK-LABEL: @producer_and_consumer
func.func @producer_and_consumer(%full: !gpu_tile.barrier, %empty: !gpu_tile.barrier, %slot: i32, %parity: i1) {
  // CHECK: "gpu_tile.barrier_wait"(%{{.*}}, %{{.*}}, %{{.*}}) : (!gpu_tile.barrier, i32, i1) -> ()
  "gpu_tile.barrier_wait"(%empty, %slot, %parity) : (!gpu_tile.barrier, i32, i1) -> ()
  // CHECK: "gpu_tile.barrier_expect"(%{{.*}}, %{{.*}}) {bytes = 49152 : i32} : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.barrier_expect"(%full, %slot) {bytes = 49152 : i32} : (!gpu_tile.barrier, i32) -> ()
  // CHECK: "gpu_tile.barrier_arrive"(%{{.*}}, %{{.*}}) {per = "thread"} : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.barrier_arrive"(%empty, %slot) {per = "thread"} : (!gpu_tile.barrier, i32) -> ()
  // CHECK: "gpu_tile.barrier_arrive"(%{{.*}}, %{{.*}}) {per = "warp"} : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.barrier_arrive"(%empty, %slot) {per = "warp"} : (!gpu_tile.barrier, i32) -> ()
  // CHECK: "gpu_tile.barrier_arrive"(%{{.*}}, %{{.*}}) {per = "warpgroup"} : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.barrier_arrive"(%empty, %slot) {per = "warpgroup"} : (!gpu_tile.barrier, i32) -> ()
  // CHECK: "gpu_tile.barrier_arrive"(%{{.*}}, %{{.*}}) {per = "once"} : (!gpu_tile.barrier, i32) -> ()
  "gpu_tile.barrier_arrive"(%empty, %slot) {per = "once"} : (!gpu_tile.barrier, i32) -> ()
  // CHECK: "gpu_tile.remote_arrive"(%{{.*}}, %{{.*}}, %{{.*}}) {per = "warpgroup"} : (!gpu_tile.barrier, i32, i32) -> ()
  "gpu_tile.remote_arrive"(%empty, %slot, %slot) {per = "warpgroup"} : (!gpu_tile.barrier, i32, i32) -> ()
  return
}
