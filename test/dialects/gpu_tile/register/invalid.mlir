// Every rule of the ops on tiles in registers, and of layouts.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @convert_changes_the_shape(%x: tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>) {
  // expected-error-re @below {{'gpu_tile.convert_layout' op a conversion keeps shape and element type: tensor<64xf32, .*>, tensor<32xf32, .*>}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>) -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  return
}

// -----
func.func @convert_changes_the_element_type(%x: tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>) {
  // expected-error @below {{'gpu_tile.convert_layout' op a conversion keeps shape and element type}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>) -> tensor<64xf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @convert_from_no_layout(%x: tensor<64xf32>) {
  // expected-error @below {{'gpu_tile.convert_layout' op expected a tile with a #gpu_tile.layout, found no layout}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32>) -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @layout_is_malformed(%x: tensor<64xf32, #gpu_tile.layout<"T(32) V(2)">>) {
  // expected-error @below {{'gpu_tile.convert_layout' op malformed layout 'T(32) V(2)'; expected e.g. 'T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)'}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32, #gpu_tile.layout<"T(32) V(2)">>) -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @layout_stride_missing(%x: tensor<64xf32, #gpu_tile.layout<"T(32,2):(2@0) V(2):(1@0)">>) {
  // expected-error @below {{2 sizes but 1 strides}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32, #gpu_tile.layout<"T(32,2):(2@0) V(2):(1@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @layout_stride_without_dimension(%x: tensor<64xf32, #gpu_tile.layout<"T(32):(2) V(2):(1@0)">>) {
  // expected-error @below {{malformed mode 32:2}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<64xf32, #gpu_tile.layout<"T(32):(2) V(2):(1@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @layout_of_24_threads(%x: tensor<48xf32, #gpu_tile.layout<"T(24):(2@0) V(2):(1@0)">>) {
  // expected-error @below {{thread mode of size 24 is no power of two}}
  %y = "gpu_tile.convert_layout"(%x) : (tensor<48xf32, #gpu_tile.layout<"T(24):(2@0) V(2):(1@0)">>) -> tensor<48xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @warp_reduce_without_layout(%x: tensor<64xf32>) {
  // expected-error @below {{'gpu_tile.warp_reduce' op expected a tile with a #gpu_tile.layout, found no layout}}
  %y = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<1xf32>
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<1xf32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @warp_reduce_axis_out_of_range(%x: !x) {
  // expected-error @below {{'gpu_tile.warp_reduce' op axis 1 is out of range for rank 1}}
  %y = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (!x) -> !y
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<1xf32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @warp_reduce_region_yields_another_type(%x: !x) {
  // expected-error @below {{'gpu_tile.warp_reduce' op region must yield f32}}
  %y = "gpu_tile.warp_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.constant 0 : i32
    gpu.yield %c : i32
  }) {axis = 0 : i32} : (!x) -> !y
  return
}

// -----
func.func @thread_reduce_without_layout(%x: tensor<64xf32>) {
  // expected-error @below {{'gpu_tile.thread_reduce' op expected a tile with a #gpu_tile.layout, found no layout}}
  %y = "gpu_tile.thread_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<1xf32>
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<1xf32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @thread_reduce_axis_out_of_range(%x: !x) {
  // expected-error @below {{'gpu_tile.thread_reduce' op axis 1 is out of range for rank 1}}
  %y = "gpu_tile.thread_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 1 : i32} : (!x) -> !y
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<1xf32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @thread_reduce_region_yields_another_type(%x: !x) {
  // expected-error @below {{'gpu_tile.thread_reduce' op region must yield f32}}
  %y = "gpu_tile.thread_reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.constant 0 : i32
    gpu.yield %c : i32
  }) {axis = 0 : i32} : (!x) -> !y
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @warp_scan_without_totals(%x: !x) {
  // expected-error @below {{element 2 in 'resultSegmentSizes' attribute must be equal to 1}}
  %y = "gpu_tile.warp_scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (!x) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @warp_scan_totals_without_layout(%x: !x) {
  // expected-error @below {{'gpu_tile.warp_scan' op expected a tile with a #gpu_tile.layout, found no layout}}
  %y, %t = "gpu_tile.warp_scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, resultSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x) -> (!x, tensor<1xf32>)
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @scan_carry_without_totals(%x: !x) {
  // expected-error @below {{element 2 in 'operandSegmentSizes' attribute must be equal to 1}}
  %y = "gpu_tile.scan_carry"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!x) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!t = tensor<2xf32, #gpu_tile.layout<"T(32):(0) V(2):(1@0)">>
func.func @scan_carry_result_has_another_type(%x: !x, %t: !t) {
  // expected-error @below {{'gpu_tile.scan_carry' op results must have the scanned tiles' types}}
  %y = "gpu_tile.scan_carry"(%x, %t) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x, !t) -> !t
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<64xf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!t = tensor<1xf32, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @warp_scan_result_has_another_type(%x: !x) {
  // expected-error @below {{'gpu_tile.warp_scan' op scanned results must have the inputs' types}}
  %y, %t = "gpu_tile.warp_scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, resultSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x) -> (!y, !t)
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!t = tensor<1xf16, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @warp_scan_totals_of_another_element_type(%x: !x) {
  // expected-error @below {{'gpu_tile.warp_scan' op totals must have the inputs' element types}}
  %y, %t = "gpu_tile.warp_scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, resultSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x) -> (!x, !t)
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!t = tensor<1xf16, #gpu_tile.layout<"T(32):(0) V():()">>
func.func @scan_carry_totals_of_another_element_type(%x: !x, %t: !t) {
  // expected-error @below {{'gpu_tile.scan_carry' op totals must have the inputs' element types}}
  %y = "gpu_tile.scan_carry"(%x, %t) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x, !t) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!t = tensor<2xf32, #gpu_tile.layout<"T(2):(1@0) V():()">>
func.func @scan_carry_totals_spread_over_threads(%x: !x, %t: !t) {
  // expected-error @below {{'gpu_tile.scan_carry' op every thread must hold its rows' totals whole, found T(2):(1@0) V():()}}
  %y = "gpu_tile.scan_carry"(%x, %t) ({
  ^bb0(%a: f32, %b: f32):
    gpu.yield %a : f32
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (!x, !t) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
func.func @shift_of_two_layouts(%x: !x, %y: !y) {
  // expected-error @below {{'gpu_tile.shift_vectors' op operands and result must have one type}}
  %z = "gpu_tile.shift_vectors"(%x, %y) {axis = 0 : i32, first = 1 : i32, width = 2 : i32} : (!x, !y) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @shift_of_whole_vectors(%x: !x) {
  // expected-error @below {{'gpu_tile.shift_vectors' op 'first' must be 1 to 1, found 2}}
  %z = "gpu_tile.shift_vectors"(%x, %x) {axis = 0 : i32, first = 2 : i32, width = 2 : i32} : (!x, !x) -> !x
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @shift_of_longer_vectors(%x: !x) {
  // expected-error @below {{'gpu_tile.shift_vectors' op a thread must hold vectors of 4 along 0, found T(32):(2@0) V(2):(1@0)}}
  %z = "gpu_tile.shift_vectors"(%x, %x) {axis = 0 : i32, first = 1 : i32, width = 4 : i32} : (!x, !x) -> !x
  return
}

// -----
!x = tensor<63xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @shift_at_the_edge(%x: !x) {
  // expected-error @below {{'gpu_tile.shift_vectors' op 63 elements are no whole vectors of 2}}
  %z = "gpu_tile.shift_vectors"(%x, %x) {axis = 0 : i32, first = 1 : i32, width = 2 : i32} : (!x, !x) -> !x
  return
}

// -----
func.func @shift_without_layout(%x: tensor<64xf32>) {
  // expected-error @below {{'gpu_tile.shift_vectors' op expected a tile with a #gpu_tile.layout, found no layout}}
  %z = "gpu_tile.shift_vectors"(%x, %x) {axis = 0 : i32, first = 1 : i32, width = 2 : i32} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return
}

// -----
!x = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!y = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
func.func @scale_in_two_layouts(%x: !x, %y: !y) {
  // expected-error @below {{'gpu_tile.scale' op operands and result must have one type}}
  %z = "gpu_tile.scale"(%x, %y) : (!x, !y) -> !x
  return
}

// -----
!x = tensor<64xf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
func.func @scale_halves(%x: !x) {
  // expected-error @below {{'gpu_tile.scale' op sums are f32, found f16}}
  %z = "gpu_tile.scale"(%x, %x) : (!x, !x) -> !x
  return
}

// -----
!p = tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
!x = tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>
func.func @warp_spread_axis_out_of_range(%p: !p) {
  // expected-error @below {{'gpu_tile.warp_spread' op axis 1 is out of range for rank 1}}
  %s = "gpu_tile.warp_spread"(%p) {axis = 1 : i32} : (!p) -> !x
  return
}

// -----
!p = tensor<8x2xf32, #gpu_tile.layout<"T(32,2):(0,1@1) V(8):(1@0)">>
!x = tensor<4x64xf32, #gpu_tile.layout<"T(64):(1@1) V(4):(1@0)">>
func.func @warp_spread_of_other_rows(%p: !p) {
  // expected-error @below {{'gpu_tile.warp_spread' op 8x2 and 4x64 differ off axis 1}}
  %s = "gpu_tile.warp_spread"(%p) {axis = 1 : i32} : (!p) -> !x
  return
}

// -----
!p = tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
!x = tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>
func.func @warp_spread_to_other_elements(%p: !p) {
  // expected-error @below {{'gpu_tile.warp_spread' op elements of f32 become i32}}
  %s = "gpu_tile.warp_spread"(%p) {axis = 0 : i32} : (!p) -> !x
  return
}
