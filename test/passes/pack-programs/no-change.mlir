// Programs that stay one a CTA.
// RUN: tilec opt %s --passes pack-programs --target sm_80 --num-warps 1 | filecheck %s
// RUN: tilec opt %s --passes pack-programs --target sm_80 --num-warps 4 | filecheck %s --check-prefix=WARPS

!v = memref<?xi32, strided<[1]>>
!t = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>

// WARPS-NOT: tile.programs_per_cta

// What lower programs do is waited for, which these could stand behind.
// CHECK-LABEL: @waits
// CHECK-NOT: programs_per_cta
func.func @waits(%a: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.fence"() {order = "acq_rel", scope = "gpu"} : () -> ()
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// ... by an atomic that orders nothing, too.
// CHECK-LABEL: @asks
// CHECK-NOT: programs_per_cta
!n = tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
!b = tensor<i1, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @asks(%a: !v, %lock: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  %zero = arith.constant dense<0> : !n
  %all = arith.constant dense<true> : !b
  %c1_i32 = arith.constant 1 : i32
  scf.while : () -> () {
    %old = "tile.atomic_rmw"(%zero, %lock, %all, %zero) {kind = "ori", options = {}, order = "relaxed", scope = "gpu"} : (!n, !v, !b, !n) -> !n
    %found = tensor.extract %old[] : !n
    %again = arith.cmpi ne, %found, %c1_i32 : i32
    scf.condition(%again)
  } do {
    scf.yield
  }
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// The author wants a CTA for each program.
// CHECK-LABEL: @alone
// CHECK-NOT: programs_per_cta
func.func @alone(%a: !v) attributes {tile.kernel, tile.persistent = false} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// A cluster's programs run side by side.
// CHECK-LABEL: @cluster
// CHECK-NOT: programs_per_cta
func.func @cluster(%a: !v) attributes {tile.kernel, tile.cluster = array<i32: 2>} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// Eight such buffers are more than half of a multiprocessor's shared memory.
// CHECK-LABEL: @buffers
// CHECK-NOT: programs_per_cta
func.func @buffers(%a: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = arith.constant dense<1> : !t
  %s = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<4096xf32>, #gpu_tile.shared<"(4096):(1)">>
  "tile.store"(%x, %a, %i) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// While its 4 KB come, the next CTA begins.
// CHECK-LABEL: @loads
// CHECK-NOT: programs_per_cta
!w = tensor<1024xi32, #gpu_tile.layout<"T(32):(4@0) V(4,8):(1@0,128@0)">>
func.func @loads(%a: !v, %b: !v) attributes {tile.kernel} {
  %i = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!v, index) -> !w
  "tile.store"(%x, %b, %i) {dims = array<i32: 0>, options = {}} : (!w, !v, index) -> ()
  return
}
