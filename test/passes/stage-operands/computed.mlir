// An lhs that follows, element by element, from a tile of its loop: the tile goes to a buffer as it
// is, and comes back part by part as fragments; each part is multiplied as soon as it is computed.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xi8, strided<[?, 1]>>
!n = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<64x64xi8>
!x = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @matmul
// CHECK: %[[T:.*]] = "tile.load"(%arg0
// CHECK: "gpu_tile.buffer_store"(%[[T]], %[[S:[0-9]+]]) : {{.*}}!gpu_tile.buffer<tensor<64x64xi8>, #gpu_tile.shared<"S<2,4,3> o (64,64):(64,1)">>
// CHECK: %[[V0:.*]] = "gpu_tile.view"(%[[S]], %{{.*}}, %{{.*}}) {{.*}}tensor<64x32xi8>
// CHECK-NEXT: %[[A0:.*]] = "gpu_tile.buffer_load"(%[[V0]]) {{.*}} -> tensor<64x32xi8, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>
// CHECK-NEXT: %[[X0:.*]] = arith.sitofp %[[A0]]
// CHECK: %[[P:.*]] = "gpu_tile.wgmma_fence"(%{{.*}})
// CHECK: %[[B0:.*]] = "gpu_tile.view"(%[[SB:.*]], %{{.*}}, %{{.*}}) {{.*}}tensor<32x64xbf16>
// CHECK: %[[Q:.*]] = "gpu_tile.wgmma"(%[[X0]], %[[B0]], %[[P]])
// CHECK: %[[K:.*]] = arith.constant 32 : i32
// CHECK: %[[V1:.*]] = "gpu_tile.view"(%[[S]], %{{.*}}, %[[K]])
// CHECK-NEXT: %[[A1:.*]] = "gpu_tile.buffer_load"(%[[V1]])
// CHECK-NEXT: %[[X1:.*]] = arith.sitofp %[[A1]]
// CHECK: %[[B1:.*]] = "gpu_tile.view"(%[[SB]], %{{.*}}, %{{.*}})
// CHECK: %[[R:.*]] = "gpu_tile.wgmma"(%[[X1]], %[[B1]], %[[Q]])
// CHECK: "gpu_tile.wgmma_wait"(%[[R]]) {pending = 0 : i32}
func.func @matmul(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 16>, strides = array<i32: 16, 1>}},
                  %b: !n {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                  %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!m, index, index) -> !a
    %x = arith.sitofp %ta : !a to !x
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!n, index, index) -> !x
    %next = "tile.dot"(%x, %tb, %sum) {options = {}} : (!x, !x, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// What no tensor copy can bring is computed by who loads it, and read from shared memory.
// CHECK-LABEL: @elements
// CHECK: %[[T:.*]] = "tile.load"(%arg0
// CHECK-NEXT: %[[X:.*]] = arith.sitofp %[[T]]
// CHECK: "gpu_tile.buffer_store"(%[[X]], %[[S:[0-9]+]]) :
// CHECK: "gpu_tile.wgmma"(%[[S]],
func.func @elements(%a: !m,
                    %b: !n {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                    %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0 : i8, options = {}} : (!m, index, index) -> !a
    %x = arith.sitofp %ta : !a to !x
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!n, index, index) -> !x
    %next = "tile.dot"(%x, %tb, %sum) {options = {}} : (!x, !x, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// What belongs to the columns of the lhs arrives once, and each part reads its own.
// CHECK-LABEL: @of_columns
// CHECK: %[[W:.*]] = "tile.load"(%arg2
// CHECK-NOT: "tile.load"(%arg2
// CHECK: "gpu_tile.buffer_store"(%[[W]], %[[S:[0-9]+]]) : {{.*}}!gpu_tile.buffer<tensor<64xbf16>, #gpu_tile.shared<"(64):(1)">>
// CHECK: "gpu_tile.view"(%[[S]], %{{.*}}) {{.*}}tensor<32xbf16>
// CHECK: "gpu_tile.view"(%[[S]], %c32_{{[^)]*}}) {{.*}}tensor<32xbf16>
func.func @of_columns(%a: !n {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                      %b: !n {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                      %w: memref<?xbf16, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}},
                      %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !n
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!n, index, index) -> !x
    %tw = "tile.load"(%w, %k) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (memref<?xbf16, strided<[1]>>, index) -> tensor<64xbf16>
    %all = "tile.broadcast"(%tw) {dims = array<i32: 1>} : (tensor<64xbf16>) -> !x
    %x = arith.mulf %ta, %all : !x
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!n, index, index) -> !x
    %next = "tile.dot"(%x, %tb, %sum) {options = {}} : (!x, !x, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
