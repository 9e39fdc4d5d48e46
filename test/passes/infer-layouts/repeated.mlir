// A number a channel, beside rows of pixels: neighbours mostly want one element, so that any layout will do for it,
// and the pixels decide.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a | filecheck %s

!x = memref<?xbf16, strided<[1]>>
!t = tensor<4096xbf16>
!i = tensor<4096xi32>

// CHECK-LABEL: @channels
// CHECK: "tile.load"({{.*}}#gpu_tile.layout<"T(128):(8@0) V(8,4):(1@0,1024@0)">
// CHECK: "tile.gather"({{.*}}#gpu_tile.layout<"T(128):(8@0) V(8,4):(1@0,1024@0)">
// CHECK-NOT: convert_layout
func.func @channels(%x: !x {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}, %w: !x, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<4096xi1>
  %zero = arith.constant dense<0.0> : !t
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!x, index) -> !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  %four = arith.constant dense<4> : !i
  %group = arith.shrsi %i, %four : !i
  %by = tensor.splat %n : !i
  %channel = arith.divsi %group, %by : !i
  %s = "tile.gather"(%w, %all, %zero, %channel) {options = {}} : (!x, tensor<4096xi1>, !t, !i) -> !t
  %r = arith.mulf %v, %s : !t
  "tile.store"(%r, %x, %c0) {dims = array<i32: 0>, options = {}} : (!t, !x, index) -> ()
  return
}

// Of these places nothing is known: a warp's lanes lie side by side.
// CHECK-LABEL: @computed
// CHECK: "tile.gather"({{.*}}#gpu_tile.layout<"T(128):(1@0) V(32):(128@0)">
func.func @computed(%x: !x {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}, %w: !x, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<4096xi1>
  %zero = arith.constant dense<0.0> : !t
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!x, index) -> !t
  %i = "tile.iota"() {axis = 0 : i32} : () -> !i
  %by = tensor.splat %n : !i
  %turned = arith.xori %i, %by : !i
  %s = "tile.gather"(%w, %all, %zero, %turned) {options = {}} : (!x, tensor<4096xi1>, !t, !i) -> !t
  %r = arith.mulf %v, %s : !t
  "tile.store"(%r, %x, %c0) {dims = array<i32: 0>, options = {}} : (!t, !x, index) -> ()
  return
}
