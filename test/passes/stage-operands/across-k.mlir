// An lhs of tf32 that is contiguous along m: its tile goes to a buffer as it lies, and comes back as
// fragments, a half along k at a time. Neighbouring registers are neighbours in the buffer.
// RUN: tilec opt %s --passes infer-layouts,stage-operands --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!a = tensor<64x32xf32>
!b = tensor<32x64xf32>
!c = tensor<64x64xf32>

// CHECK-LABEL: @across
// CHECK: %[[T:.*]] = "tile.load"(%arg0
// CHECK: "gpu_tile.buffer_store"(%[[T]], %[[S:[0-9]+]]) : {{.*}}!gpu_tile.buffer<tensor<64x32xf32>, #gpu_tile.shared<"S<3,4,3> o ((32,2),32):((1,1024),32)">>
// CHECK: %[[V0:.*]] = "gpu_tile.view"(%[[S]], %{{.*}}, %{{.*}}) {{.*}}tensor<64x16xf32>
// CHECK-NEXT: %[[A0:.*]] = "gpu_tile.buffer_load"(%[[V0]]) {{.*}} -> tensor<64x16xf32, #gpu_tile.layout<"T(4,2,2,4,2):(1@1,2@0,16@0,4@0,32@0) V(2,4):(1@0,4@1)">>
// CHECK: %[[P:.*]] = "gpu_tile.wgmma_fence"(%{{.*}}) : (tensor<64x64xf32, #gpu_tile.layout<"T(4,2,2,4,2):(2@1,2@0,16@0,4@0,32@0) V(2,2,8):(1@0,1@1,8@1)">>)
// CHECK: %[[Q:.*]] = "gpu_tile.wgmma"(%[[A0]], %{{.*}}, %[[P]]) {instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"}
// CHECK: %[[A1:.*]] = "gpu_tile.buffer_load"
// CHECK: "gpu_tile.wgmma"(%[[A1]], %{{.*}}, %[[Q]])
func.func @across(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %k, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32", instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Three panels of the rhs along k are no two halves: instructions must not begin inside one.
// CHECK-LABEL: @panels
// CHECK: "gpu_tile.view"({{.*}}tensor<64x32xf32>
// CHECK: "gpu_tile.view"({{.*}}tensor<32x64xf32>{{.*}}((16,3),64):((1,1024),16)
// CHECK: "gpu_tile.view"({{.*}}tensor<64x16xf32>
func.func @panels(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                  %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %bk = arith.constant 48 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c0 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %k, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<64x48xf32>
    %tb = "tile.load"(%b, %c0, %k) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<48x64xf32>
    %next = "tile.dot"(%ta, %tb, %sum) {options = {precision = "tf32", instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"}} : (tensor<64x48xf32>, tensor<48x64xf32>, !c) -> !c
    scf.yield %next : !c
  }
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}

// Where no copy engine brings it in a loop, all of it is read at once.
// CHECK-LABEL: @once
// CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[S:[0-9]+]])
// CHECK-NEXT: %[[A:.*]] = "gpu_tile.buffer_load"(%[[S]]) {{.*}} -> tensor<64x32xf32, #gpu_tile.layout<"T(4,2,2,4,2):(1@1,2@0,16@0,4@0,32@0) V(2,8):(1@0,4@1)">>
// CHECK: "gpu_tile.wgmma"(%[[A]],
func.func @once(%a: !m, %b: !m, %c: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %ta = "tile.load"(%a, %c0, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !a
  %tb = "tile.load"(%b, %c0, %c0) {dims = array<i32: 1, 0>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !b
  %d = "tile.dot"(%ta, %tb, %zero) {options = {precision = "tf32", instruction = "wgmma.m64n64k8.f32.tf32.tf32.paired"}} : (!a, !b, !c) -> !c
  "tile.store"(%d, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, !m, index, index) -> ()
  return
}
