// Operands in shared memory, the sum in tensor memory; a ring tells when it is there.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands --target sm_100a --num-warps 4 | filecheck %s

!a = tensor<128x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<128x128xf32>
!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>

// A sum that starts with zeros is overwritten, not stored.
// CHECK-LABEL: @overwrites
// CHECK: %[[DONE:.*]] = "gpu_tile.make_ring"() {fills = 1 : i32, options = {}, releases = 0 : i32, slots = 1 : i32}
// CHECK-DAG: "gpu_tile.buffer_store"(%{{.*}}, %[[A:.*]]) : {{.*}}shared
// CHECK-DAG: "gpu_tile.buffer_store"(%{{.*}}, %[[B:.*]]) : {{.*}}shared
// CHECK: %[[T:.*]] = "gpu_tile.alloc"() {{.*}}#gpu_tile.tmem<"(128,128):(1@lane,1@col)">
// CHECK-NOT: gpu_tile.buffer_store
// CHECK: %[[ADD:.*]] = arith.constant false
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T]], %[[ADD]]) {instruction = "tcgen05.m128n128k16.f32.bf16.bf16"}
// CHECK: %[[P:.*]] = "gpu_tile.ring_slot"(%[[DONE]], %[[N:[^)]*]])
// CHECK-NEXT: "gpu_tile.ring_publish"(%[[DONE]], %[[P]]) {by = "products"}
// CHECK-NEXT: "gpu_tile.ring_wait"(%[[DONE]], %[[N]]) {previous = false}
// A thread holds a row.
// CHECK-NEXT: "gpu_tile.buffer_load"(%[[T]]) {{.*}} -> tensor<128x128xf32, #gpu_tile.layout<"T(128):(1@0) V(128):(1@1)">>
func.func @overwrites(%a: !m, %b: !m, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %zero = arith.constant dense<0.0> : !c
  %d = "tile.dot"(%x, %y, %zero) {options = {}} : (!a, !b, !c) -> !c
  "tile.store"(%d, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}

// CHECK-LABEL: @adds
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[T:.*]]) : {{.*}}tmem
// CHECK: %[[ADD:.*]] = arith.constant true
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T]], %[[ADD]])
func.func @adds(%a: !m, %b: !m, %c: !o, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %z = "tile.load"(%c, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!o, index, index) -> !c
  %d = "tile.dot"(%x, %y, %z) {options = {}} : (!a, !b, !c) -> !c
  "tile.store"(%d, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}

// The turns of the ring are counted through the loop.
// CHECK-LABEL: @counts
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[N:.*]] = %{{.*}})
// CHECK: gpu_tile.tcgen05_mma
// CHECK: "gpu_tile.ring_slot"(%{{.*}}, %[[N]])
// CHECK: "gpu_tile.ring_wait"(%{{.*}}, %[[N]])
// CHECK: arith.addi %[[N]]
func.func @counts(%n: index, %a: !m, %b: !m, %c: !o, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %z = "tile.load"(%c, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!o, index, index) -> !c
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %z) -> (!c) {
    %d = "tile.dot"(%x, %y, %acc) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}

// What was computed in the rows of another product goes to tensor memory, too: two halves a column.
// CHECK-LABEL: @chained
// CHECK: %[[S:.*]] = "gpu_tile.buffer_load"
// CHECK: %[[P:.*]] = arith.truncf
// CHECK: %[[A:.*]] = "gpu_tile.alloc"() {{.*}}tensor<128x128xbf16>, #gpu_tile.tmem<"(128,128):(1@lane,16@bit)">
// CHECK: "gpu_tile.buffer_store"(%[[P]], %[[A]])
// CHECK: "gpu_tile.tcgen05_mma"(%[[A]],
func.func @chained(%a: !m, %b: !m, %d: !m, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %v = "tile.load"(%d, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> tensor<128x128xbf16>
  %zero = arith.constant dense<0.0> : !c
  %s = "tile.dot"(%x, %y, %zero) {options = {}} : (!a, !b, !c) -> !c
  %p = arith.truncf %s : !c to tensor<128x128xbf16>
  %r = "tile.dot"(%p, %v, %zero) {options = {}} : (tensor<128x128xbf16>, tensor<128x128xbf16>, !c) -> !c
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}
