// What a loop does more with goes through registers each time.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,keep-accumulators --target sm_100a --num-warps 4 | filecheck %s

!a = tensor<128x64xbf16>
!b = tensor<64x128xbf16>
!c = tensor<128x128xf32>
!m = memref<?x?xbf16, strided<[?, 1]>>
!o = memref<?x?xf32, strided<[?, 1]>>

// CHECK-LABEL: @scaled
// CHECK: scf.for {{.*}} -> (tensor<128x128xf32
// CHECK: arith.mulf
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[T:.*]]) : {{.*}}tmem
// CHECK: gpu_tile.tcgen05_mma
// CHECK: "gpu_tile.buffer_load"(%[[T]])
// CHECK: scf.yield
func.func @scaled(%n: index, %a: !m, %b: !m, %c: !o, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %z = "tile.load"(%c, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!o, index, index) -> !c
  %c1 = arith.constant 1 : index
  %half = arith.constant dense<0.5> : !c
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %z) -> (!c) {
    %s = arith.mulf %acc, %half : !c
    %d = "tile.dot"(%x, %y, %s) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %d : !c
  }
  "tile.store"(%r, %out, %z0, %z0) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
  return
}

// The sum of each iteration is read, too.
// CHECK-LABEL: @read
// CHECK: scf.for {{.*}} -> (tensor<128x128xf32
// CHECK: gpu_tile.tcgen05_mma
// CHECK: gpu_tile.buffer_load
// CHECK: tile.store
// CHECK: scf.yield
func.func @read(%n: index, %a: !m, %b: !m, %c: !o, %out: !o) attributes {tile.kernel} {
  %z0 = arith.constant 0 : index
  %x = "tile.load"(%a, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %y = "tile.load"(%b, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
  %z = "tile.load"(%c, %z0, %z0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!o, index, index) -> !c
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %z0 to %n step %c1 iter_args(%acc = %z) -> (!c) {
    %d = "tile.dot"(%x, %y, %acc) {options = {}} : (!a, !b, !c) -> !c
    "tile.store"(%d, %out, %z0, %i) {dims = array<i32: 0, 1>, options = {}} : (!c, !o, index, index) -> ()
    scf.yield %d : !c
  }
  return
}
