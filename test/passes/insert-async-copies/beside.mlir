// What registers alone want of a loop with tensor copies comes by one, too, if it is little: each
// reader takes it in its own layout, without a conversion across warps. A tile as large as the
// operands, and numbers that no tensor copy brings, are loaded as before.
// RUN: tilec opt %s --passes select-mma,infer-layouts,remove-layout-conversions,stage-operands,insert-async-copies --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!v = memref<?xf32, strided<[1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @beside
// CHECK: scf.for
// CHECK-NOT: "tile.load"(%arg2
// CHECK: "gpu_tile.ring_announce"{{.*}} {bytes = 8192 : i32}
// CHECK: "gpu_tile.ring_announce"{{.*}} {bytes = 256 : i32}
// CHECK: "gpu_tile.tma_load"
// CHECK-NOT: "tile.load"(%arg2
// CHECK: "tile.load"(%arg3
// CHECK: "tile.load"(%arg4
// CHECK: gpu_tile.wgmma_wait
// CHECK: "gpu_tile.buffer_load"(%{{.*}}) : (!gpu_tile.buffer<tensor<64xf32>
// CHECK-NEXT: tile.broadcast
func.func @beside(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %off: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}},
                  %odd: !v {tile.facts = {align = 4 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}},
                  %bias: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %o: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %q, %c0 : !m
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %sum = scf.for %i = %c0 to %rows step %bm iter_args(%all = %zero) -> (!c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %x = "tile.load"(%off, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<64xf32>
    %y = "tile.load"(%odd, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<64xf32>
    %b = "tile.load"(%bias, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %s = "tile.dot"(%key, %qt, %zero) {options = {}} : (!a, !a, !c) -> !c
    %xs = "tile.broadcast"(%x) {dims = array<i32: 1>} : (tensor<64xf32>) -> !c
    %ys = "tile.broadcast"(%y) {dims = array<i32: 1>} : (tensor<64xf32>) -> !c
    %bs = arith.extf %b : !a to !c
    %s1 = arith.subf %s, %xs : !c
    %s2 = arith.mulf %s1, %ys : !c
    %s3 = arith.addf %s2, %bs : !c
    %next = arith.addf %all, %s3 : !c
    scf.yield %next : !c
  }
  "tile.store"(%sum, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}

// What becomes an operand, times what warps convert, which a load role does not, comes by a copy,
// too, as large as it is: who multiplies would wait for a load in every iteration.
// CHECK-LABEL: @scaled
// CHECK: scf.for
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.ring_announce"{{.*}} {bytes = 8192 : i32}
// CHECK: "gpu_tile.ring_announce"{{.*}} {bytes = 8448 : i32}
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.buffer_load"
// CHECK: gpu_tile.wgmma
func.func @scaled(%q: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                  %by: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}},
                  %o: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %q, %c0 : !m
  %sum = scf.for %i = %c0 to %rows step %bm iter_args(%all = %zero) -> (!c) {
    %query = "tile.load"(%q, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %qt = "tile.transpose"(%query) {permutation = array<i32: 1, 0>} : (!a) -> !a
    %key = "tile.load"(%k, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %x = "tile.load"(%by, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<64xf32>
    %x1 = math.exp %x : tensor<64xf32>
    %x2 = arith.mulf %x1, %x : tensor<64xf32>
    %x3 = arith.addf %x2, %x1 : tensor<64xf32>
    %x4 = arith.mulf %x3, %x2 : tensor<64xf32>
    %x5 = arith.addf %x4, %x3 : tensor<64xf32>
    %xs = "tile.broadcast"(%x5) {dims = array<i32: 0>} : (tensor<64xf32>) -> !c
    %wide = arith.extf %key : !a to !c
    %times = arith.mulf %wide, %xs : !c
    %scaled = arith.truncf %times : !c to !a
    %s = "tile.dot"(%qt, %scaled, %all) {options = {}} : (!a, !a, !c) -> !c
    scf.yield %s : !c
  }
  "tile.store"(%sum, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}

// What a product reads as it is, registers read from its buffer, too, each in its own layout: a copy
// brings both, and no load stands in the loop.
// CHECK-LABEL: @also_in_registers
// CHECK: scf.for
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.tma_load"(%{{[^,]*}}, %[[KEY:[^,]*]],
// CHECK-NOT: "tile.load"
// CHECK: "gpu_tile.wgmma"(%{{[^,]*}}, %[[KEY]],
// CHECK: "gpu_tile.buffer_load"(%[[KEY]]){{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
// CHECK-NEXT: arith.extf
// CHECK-NOT: gpu_tile.convert_layout
// CHECK: scf.yield
func.func @also_in_registers(%k: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}},
                             %o: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 64>, strides = array<i32: 64, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bm = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %rows = memref.dim %k, %c0 : !m
  %sum = scf.for %i = %c0 to %rows step %bm iter_args(%all = %zero) -> (!c) {
    %key = "tile.load"(%k, %i, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %held = arith.truncf %all : !c to !a
    %s = "tile.dot"(%held, %key, %zero) {options = {}} : (!a, !a, !c) -> !c
    %wide = arith.extf %key : !a to !c
    %next = arith.subf %wide, %s : !c
    scf.yield %next : !c
  }
  %out = arith.truncf %sum : !c to !a
  "tile.store"(%out, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!a, !m, index, index) -> ()
  return
}
