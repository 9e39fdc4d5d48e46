// What is scanned along another dimension than rows of memory: vectors along the rows, as accesses want
// them, and neighbours of a column in each thread, then in the lanes and then in the warps.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x64xf32, strided<[64, 1]>>
!t = tensor<64x64xf32>
!r = tensor<8x256xf32>

// CHECK-LABEL: @columns
// CHECK: "tile.load"{{.*}} -> tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,8@0) V(4,8):(1@1,1@0)">>
// CHECK-NOT: convert_layout
func.func @columns(%x: !m {tile.facts = {align = 16 : i32}}, %y: !m {tile.facts = {align = 16 : i32}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %tile = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (!m, index, index) -> !t
  %sums = "tile.scan"(%tile) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32, reverse = true} : (!t) -> !t
  "tile.store"(%sums, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Rows lie as accesses want them: a scan along them takes shuffles, and they are in few warps.
// CHECK-LABEL: @rows
// CHECK: "tile.load"{{.*}} -> tensor<8x256xf32, #gpu_tile.layout<"T(32,4):(4@1,1@0) V(4,2,2):(1@1,128@1,4@0)">>
// CHECK-NOT: convert_layout
func.func @rows(%x: memref<?x256xf32, strided<[256, 1]>> {tile.facts = {align = 16 : i32}}, %y: memref<?x256xf32, strided<[256, 1]>> {tile.facts = {align = 16 : i32}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %tile = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0, 1>, options = {}, padding = 0.0 : f32} : (memref<?x256xf32, strided<[256, 1]>>, index, index) -> !r
  %sums = "tile.scan"(%tile) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    gpu.yield %s : f32
  }) {axis = 1 : i32, reverse = false} : (!r) -> !r
  "tile.store"(%sums, %y, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!r, memref<?x256xf32, strided<[256, 1]>>, index, index) -> ()
  return
}

// Numbers apart in memory: lanes hold neighbours, which share lines, although runs of them would scan in fewer
// shuffles.
// CHECK-LABEL: @apart
// CHECK: "tile.load"{{.*}} -> tensor<256xf32, #gpu_tile.layout<"T(32,4):(1@0,64@0) V(2):(32@0)">>
func.func @apart(%x: memref<?x16xf32, strided<[16, 1]>>, %y: memref<?x16xf32, strided<[16, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %tile = "tile.load"(%x, %c0, %c0) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (memref<?x16xf32, strided<[16, 1]>>, index, index) -> tensor<256xf32>
  %sums = "tile.scan"(%tile) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32, reverse = false} : (tensor<256xf32>) -> tensor<256xf32>
  "tile.store"(%sums, %y, %c0, %c0) {dims = array<i32: 0>, options = {}} : (tensor<256xf32>, memref<?x16xf32, strided<[16, 1]>>, index, index) -> ()
  return
}

// A row in several warps, of which a thread has many elements apart: each warp has a part of the row, whose blocks
// it scans alone, and warps meet for one total each.
// CHECK-LABEL: @long_rows
// CHECK: "tile.load"{{.*}} -> tensor<11520xf32, #gpu_tile.layout<"T(32,4):(1@0,2880@0) V(90):(32@0)">>
// CHECK-NOT: convert_layout
func.func @long_rows(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %tile = "tile.load"(%x, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (memref<?x?xf32, strided<[?, 1]>>, index, index) -> tensor<11520xf32>
  %sums = "tile.scan"(%tile) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    gpu.yield %s : f32
  }) {axis = 0 : i32, reverse = false} : (tensor<11520xf32>) -> tensor<11520xf32>
  "tile.store"(%sums, %y, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<11520xf32>, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
