// A while loop is left behind its condition: what the condition read is not ordered by syncs of its body.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#row = #gpu_tile.layout<"T(128):(1@0) V():()">
#back = #gpu_tile.layout<"T(4,32):(32@0,1@0) V():()">
!t = tensor<128xf32, #row>
!u = tensor<128xf32, #back>
!b = !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>

// CHECK-LABEL: @behind_the_condition
func.func @behind_the_condition(%x: !t, %go: i1) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %o = "gpu_tile.alloc"() {options = {offset = 512 : i32}} : () -> !b
  // CHECK: scf.while
  // CHECK-NEXT: buffer_store{{.*}}%[[S:[0-9]+]]
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: buffer_load
  // CHECK-NEXT: scf.condition
  // CHECK: do
  // CHECK: buffer_store
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: buffer_load
  // CHECK: scf.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: buffer_store
  // CHECK-NEXT: return
  scf.while : () -> () {
    "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
    %p = "gpu_tile.buffer_load"(%s) : (!b) -> !u
    scf.condition(%go)
  } do {
    "gpu_tile.buffer_store"(%x, %o) : (!t, !b) -> ()
    %q = "gpu_tile.buffer_load"(%o) : (!b) -> !u
    scf.yield
  }
  "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
  return
}

// The body of the last iteration stands in front of the last condition.
// CHECK-LABEL: @behind_the_body
func.func @behind_the_body(%x: !t, %go: i1) attributes {tile.kernel} {
  %s = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  // CHECK: do
  // CHECK: buffer_store
  // CHECK: }
  // CHECK-NEXT: gpu_tile.sync
  // CHECK-NEXT: buffer_load
  scf.while : () -> () {
    scf.condition(%go)
  } do {
    "gpu_tile.buffer_store"(%x, %s) : (!t, !b) -> ()
    scf.yield
  }
  %p = "gpu_tile.buffer_load"(%s) : (!b) -> !u
  return
}
