// Ops on tiles in registers, printed as they were read.
// RUN: %roundtrip

!wide = tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>
!totals = tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
!all = tensor<2xf32, #gpu_tile.layout<"T(64):(0) V(2):(1@0)">>

// CHECK-LABEL: @convert_layout
func.func @convert_layout(%x: !wide) -> tensor<256xf32, #gpu_tile.layout<"T(64):(1@0) V(4):(64@0)">> {
  // CHECK: "gpu_tile.convert_layout"(%{{.*}}) : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) -> tensor<256xf32, #gpu_tile.layout<"T(64):(1@0) V(4):(64@0)">>
  %y = "gpu_tile.convert_layout"(%x) : (!wide) -> tensor<256xf32, #gpu_tile.layout<"T(64):(1@0) V(4):(64@0)">>
  return %y : tensor<256xf32, #gpu_tile.layout<"T(64):(1@0) V(4):(64@0)">>
}

// CHECK-LABEL: @warp_reduce
func.func @warp_reduce(%x: !wide) -> !totals {
  // CHECK: "gpu_tile.warp_reduce"(%{{.*}}) ({
  // CHECK: }) {axis = 0 : i32} : (tensor<256xf32, {{.*}}>) -> tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
  %p = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32} : (!wide) -> !totals
  return %p : !totals
}

// CHECK-LABEL: @warp_spread
func.func @warp_spread(%p: !totals) -> !wide {
  // CHECK: "gpu_tile.warp_spread"(%{{.*}}) {axis = 0 : i32} : (tensor<2xf32, {{.*}}>) -> tensor<256xf32, {{.*}}>
  %s = "gpu_tile.warp_spread"(%p) {axis = 0 : i32} : (!totals) -> !wide
  return %s : !wide
}

// CHECK-LABEL: @thread_reduce
func.func @thread_reduce(%x: !wide) -> tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">> {
  // CHECK: "gpu_tile.thread_reduce"(%{{.*}}) ({
  // CHECK: }) {axis = 0 : i32} : (tensor<256xf32, {{.*}}>) -> tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>
  %p = "gpu_tile.thread_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32} : (!wide) -> tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>
  return %p : tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>
}

// CHECK-LABEL: @warp_scan_and_its_carry
func.func @warp_scan_and_its_carry(%x: !wide, %t: !all) {
  // CHECK: "gpu_tile.warp_scan"(%{{.*}}) ({
  // CHECK: }) {axis = 0 : i32, resultSegmentSizes = array<i32: 1, 0, 1, 0>, reverse = true}
  %s, %u = "gpu_tile.warp_scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32, reverse = true, resultSegmentSizes = array<i32: 1, 0, 1, 0>} : (!wide) -> (!wide, !totals)
  // CHECK: "gpu_tile.scan_carry"(%{{.*}}, %{{.*}}) ({
  // CHECK: }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 0>, reverse = true}
  %y = "gpu_tile.scan_carry"(%s, %t) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32, reverse = true, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!wide, !all) -> !wide
  return
}

// CHECK-LABEL: @shift_vectors
func.func @shift_vectors(%a: !wide, %b: !wide) -> !wide {
  // CHECK: "gpu_tile.shift_vectors"(%{{.*}}, %{{.*}}) {axis = 0 : i32, first = 3 : i32, width = 4 : i32} : (tensor<256xf32, {{.*}}>, tensor<256xf32, {{.*}}>) -> tensor<256xf32, {{.*}}>
  %y = "gpu_tile.shift_vectors"(%a, %b) {axis = 0 : i32, first = 3 : i32, width = 4 : i32} : (!wide, !wide) -> !wide
  return %y : !wide
}

// CHECK-LABEL: @scale
func.func @scale(%sums: !wide, %factors: !wide) -> !wide {
  // CHECK: "gpu_tile.scale"(%{{.*}}, %{{.*}}) : (tensor<256xf32, {{.*}}>, tensor<256xf32, {{.*}}>) -> tensor<256xf32, {{.*}}>
  %y = "gpu_tile.scale"(%sums, %factors) : (!wide, !wide) -> !wide
  return %y : !wide
}
