// Every rule of the ops in mbarrier.py.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @no_slots() {
  // expected-error @below {{'gpu_tile.barrier_init' op slots must be positive, found 0}}
  %b = "gpu_tile.barrier_init"() {slots = 0 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @no_arrivals() {
  // expected-error @below {{'gpu_tile.barrier_init' op count must be 1 to 1048575, found 0}}
  %b = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 0 : i32, options = {}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @too_many_arrivals() {
  // expected-error @below {{'gpu_tile.barrier_init' op count must be 1 to 1048575, found 1048576}}
  %b = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1048576 : i32, options = {}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @offset_in_a_barrier() {
  // expected-error @below {{'gpu_tile.barrier_init' op offset 12 is no multiple of 8}}
  %b = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 12 : i32}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @offset_below_zero() {
  // expected-error @below {{'gpu_tile.barrier_init' op offset -8 is no multiple of 8}}
  %b = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = -8 : i32}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @unknown_option() {
  // expected-error @below {{'gpu_tile.barrier_init' op attribute 'options' has the unknown option 'scope'; known: offset}}
  %b = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {scope = "cluster"}} : () -> !gpu_tile.barrier
  return
}

// -----
func.func @makes_a_number() {
  // expected-error @below {{expected base type 'gpu_tile.barrier' but got}}
  %b = "gpu_tile.barrier_init"() {slots = 3 : i32, count = 1 : i32, options = {}} : () -> i32
  return
}

// -----
func.func @nothing_expected(%b: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{'gpu_tile.barrier_expect' op bytes must be 1 to 1048575, found 0}}
  "gpu_tile.barrier_expect"(%b, %slot) {bytes = 0 : i32} : (!gpu_tile.barrier, i32) -> ()
  return
}

// -----
func.func @too_much_expected(%b: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{'gpu_tile.barrier_expect' op bytes must be 1 to 1048575, found 1048576}}
  "gpu_tile.barrier_expect"(%b, %slot) {bytes = 1048576 : i32} : (!gpu_tile.barrier, i32) -> ()
  return
}

// -----
func.func @arrive_per_cta(%b: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{'gpu_tile.barrier_arrive' op attribute 'per' must be one of 'thread', 'warp', 'warpgroup', 'once', found "cta"}}
  "gpu_tile.barrier_arrive"(%b, %slot) {per = "cta"} : (!gpu_tile.barrier, i32) -> ()
  return
}

// -----
func.func @wait_for_a_number(%b: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{expected 'i1' but got 'i32'}}
  "gpu_tile.barrier_wait"(%b, %slot, %slot) : (!gpu_tile.barrier, i32, i32) -> ()
  return
}

// -----
func.func @wait_for_an_index(%b: !gpu_tile.barrier, %slot: index, %parity: i1) {
  // expected-error @below {{expected 'i32' but got 'index'}}
  "gpu_tile.barrier_wait"(%b, %slot, %parity) : (!gpu_tile.barrier, index, i1) -> ()
  return
}

// -----
func.func @a_mask_is_an_i32(%b: !gpu_tile.barrier, %slot: i32, %mask: i16) {
  // expected-error @below {{expected 'i32' but got 'i16'}}
  "gpu_tile.remote_arrive"(%b, %slot, %mask) {per = "warp"} : (!gpu_tile.barrier, i32, i16) -> ()
  return
}

// -----
func.func @arrive_per_cluster(%b: !gpu_tile.barrier, %slot: i32) {
  // expected-error @below {{'gpu_tile.remote_arrive' op attribute 'per' must be one of 'thread', 'warp', 'warpgroup', 'once', found "cluster"}}
  "gpu_tile.remote_arrive"(%b, %slot, %slot) {per = "cluster"} : (!gpu_tile.barrier, i32, i32) -> ()
  return
}
