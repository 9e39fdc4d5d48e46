// A load that only fills a buffer becomes a copy with its wait right behind.
// RUN: tilec opt %s --passes insert-async-copies --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8):(1@1)">
!t = tensor<16x64xf16, #ld>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>

// CHECK-LABEL: @one_load
func.func @one_load(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    // CHECK: scf.for
    // CHECK-NOT: tile.load
    // CHECK: %[[S:.*]] = "gpu_tile.alloc"()
    // CHECK: "gpu_tile.cp_async"(%{{.*}}, %[[S]], %true, %c0, %{{.*}}) {bytes = 16 : i32, cache = "cg", dims = array<i32: 0, 1>}
    // CHECK-NEXT: "gpu_tile.cp_async_commit"()
    // CHECK-NEXT: "gpu_tile.cp_async_wait"() {pending = 0 : i32}
    // CHECK-NEXT: "gpu_tile.buffer_load"(%[[S]])
    // CHECK-NOT: gpu_tile.buffer_store
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// What L1 shall drop first does not go there.
// CHECK-LABEL: @past_l1
func.func @past_l1(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    // CHECK: "gpu_tile.cp_async"{{.*}} {bytes = 16 : i32, cache = "cg", dims = array<i32: 0, 1>}
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {cache = "evict_first"}} : (!m, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}

// Two loads with address arithmetic between them are one group.
// CHECK-LABEL: @two_loads_one_group
func.func @two_loads_one_group(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}}, %o: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    // CHECK: gpu_tile.cp_async"
    // CHECK: arith.addi
    // CHECK: gpu_tile.cp_async"
    // CHECK-NEXT: gpu_tile.cp_async_commit
    // CHECK-NEXT: gpu_tile.cp_async_wait
    // CHECK-NOT: gpu_tile.cp_async_commit
    %t = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %j = arith.addi %k, %c64 : index
    %u = "tile.load"(%a, %c0, %j) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> !t
    %x = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%u, %x) : (!t, !b) -> ()
    %s = "gpu_tile.alloc"() {options = {}} : () -> !b
    "gpu_tile.buffer_store"(%t, %s) : (!t, !b) -> ()
    %r = "gpu_tile.buffer_load"(%s) : (!b) -> !t
    "tile.store"(%r, %o, %c0, %k) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  }
  return
}
