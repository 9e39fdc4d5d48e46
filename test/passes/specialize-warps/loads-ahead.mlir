// What goes through the load role's registers is loaded an iteration ahead, where vectors of it fit
// there twice: @vectors; elements of two bytes do not wait packed for the next iteration: @elements.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies,split-conversions,specialize-warps --target sm_90a --num-warps 8 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!a = tensor<128x64xbf16>
!b = tensor<64x64xbf16>
!c = tensor<128x64xf32>

// CHECK-LABEL: @vectors
// CHECK: "gpu_tile.role"
// CHECK: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<128x64xbf16
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER:.*]], %[[UPPER:.*]] : index
// CHECK: %[[FIRST:.*]] = scf.if %[[ANY]]
// CHECK: %[[X:.*]] = "tile.load"(%arg0, %{{.*}}, %[[LOWER]])
// CHECK: scf.yield %[[X]]
// CHECK: scf.yield %[[NONE]]
// CHECK: scf.for %[[K:.*]] = %[[LOWER]] to %[[UPPER]] step %[[STEP:.*]] iter_args(%{{.*}} = %{{.*}}, %[[T:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[K]], %[[STEP]] : index
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[AHEAD]], %[[UPPER]] : index
// CHECK: %[[NEXT:.*]] = scf.if %[[MORE]]
// CHECK: %[[Y:.*]] = "tile.load"(%arg0, %{{.*}}, %[[AHEAD]])
// CHECK: scf.yield %[[Y]]
// CHECK: scf.yield %[[T]]
// CHECK: %[[Z:.*]] = arith.negf %[[T]]
// CHECK: %[[SLOT:.*]] = "gpu_tile.ring_acquire"
// CHECK-NEXT: %[[S:.*]] = "gpu_tile.slot"(%{{.*}}, %[[SLOT]])
// CHECK: "gpu_tile.buffer_store"(%[[Z]], %[[S]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: name = "load"
func.func @vectors(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 4, 4>, strides = array<i32: 4, 1>}},
                   %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                   %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %minus = arith.negf %ta : !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%minus, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 2 : i32, tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// CHECK-LABEL: @elements
// CHECK: "gpu_tile.role"
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: %[[X:.*]] = "tile.load"(%arg0
// CHECK: arith.negf %[[X]]
// CHECK: name = "load"
func.func @elements(%a: !m,
                    %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}},
                    %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !c
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (!c) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
    %minus = arith.negf %ta : !a
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !b
    %next = "tile.dot"(%minus, %tb, %sum) {options = {}} : (!a, !b, !c) -> !c
    scf.yield %next : !c
  } {tile.stages = 2 : i32, tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// Of few registers, those of two iterations come together, a turn ahead; what is left of the
// iterations loads one ahead.
// CHECK-LABEL: @turns
// CHECK: "gpu_tile.role"
// CHECK: %[[TURNS:.*]] = arith.muli %{{.*}}, %[[SPAN:.*]] : index
// CHECK: %[[END:.*]] = arith.addi %[[LOWER:.*]], %[[TURNS]] : index
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[LOWER]], %[[END]] : index
// CHECK: %[[FIRST:.*]]:2 = scf.if %[[ANY]]
// CHECK-COUNT-2: "tile.load"(%arg1
// CHECK: scf.for %[[K:.*]] = %[[LOWER]] to %[[END]] step %[[SPAN]] iter_args(%{{.*}} = %{{.*}}, %[[T0:.*]] = %[[FIRST]]#0, %[[T1:.*]] = %[[FIRST]]#1)
// CHECK: scf.if
// CHECK-COUNT-2: "tile.load"(%arg1
// CHECK: arith.negf %[[T0]]
// CHECK: "gpu_tile.buffer_store"
// CHECK: arith.negf %[[T1]]
// CHECK: "gpu_tile.buffer_store"
// CHECK: scf.yield
// CHECK: scf.if
// CHECK: "tile.load"(%arg1
// CHECK: scf.for
// CHECK: name = "load"
func.func @turns(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
                 %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>}},
                 %c: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bk = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %size = memref.dim %a, %c1 : !m
  %acc = scf.for %k = %c0 to %size step %bk iter_args(%sum = %zero) -> (tensor<64x32xf32>) {
    %ta = "tile.load"(%a, %c0, %k) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> tensor<64x32xbf16>
    %tb = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> tensor<32x32xbf16>
    %minus = arith.negf %tb : tensor<32x32xbf16>
    %next = "tile.dot"(%ta, %minus, %sum) {options = {}} : (tensor<64x32xbf16>, tensor<32x32xbf16>, tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  } {tile.stages = 4 : i32, tile.warp_specialize = true}
  "tile.store"(%acc, %c, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x32xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
