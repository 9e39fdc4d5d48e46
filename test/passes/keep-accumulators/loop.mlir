// A sum that a loop only adds to stays in tensor memory.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,keep-accumulators --target sm_100a --num-warps 4 | filecheck %s

!a = tensor<128x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<128x128xf32>
!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>

// From zeros: the first iteration overwrites, and nobody reads what no iteration wrote.
// CHECK-LABEL: @zeros
// CHECK-SAME: %[[N:.*]]: index,
// CHECK-NOT: gpu_tile.buffer_store{{.*}}tmem
// CHECK: scf.for %[[I:.*]] = %[[LOWER:.*]] to %[[N]] {{.*}} -> (i32)
// CHECK: %[[ADD:.*]] = arith.cmpi slt, %[[LOWER]], %[[I]]
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T:.*]], %[[ADD]])
// CHECK-NOT: gpu_tile.buffer_load
// CHECK: scf.yield
// CHECK: %[[RAN:.*]] = arith.cmpi slt, %[[LOWER]], %[[N]]
// CHECK: %[[R:.*]] = scf.if %[[RAN]]
// CHECK: "gpu_tile.buffer_load"(%[[T]])
// CHECK: } else {
// CHECK: "gpu_tile.convert_layout"(%[[R]])
func.func @zeros(%n: index, %a: !m, %b: !m, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %acc) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}

// From anything else: stored once, in front.
// CHECK-LABEL: @start
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[T:.*]]) : {{.*}}tmem
// CHECK: scf.for
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T]], %[[TRUE]])
// CHECK: scf.yield
// CHECK-NOT: scf.if
// CHECK: "gpu_tile.buffer_load"(%[[T]])
func.func @start(%n: index, %a: !m, %b: !m, %c: !o, %out: !o) attributes {tile.kernel} {
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

// Two products into one sum: the second goes on where the first is, and always adds.
// CHECK-LABEL: @chain
// CHECK: scf.for
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T:.*]], %{{.*}})
// CHECK-NOT: gpu_tile.buffer_store{{.*}}tmem
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: "gpu_tile.tcgen05_mma"(%{{.*}}, %{{.*}}, %[[T]], %[[TRUE]])
// CHECK: scf.if
func.func @chain(%n: index, %a: !m, %b: !m, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !c
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %zero) -> (!c) {
    %d = "tile.dot"(%x, %y, %acc) {options = {}} : (!a, !b, !c) -> !c
    %e = "tile.dot"(%x, %y, %d) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %e : !c
  }
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}
