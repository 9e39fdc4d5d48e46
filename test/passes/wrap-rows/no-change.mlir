// Rows that are aligned, that begin differently, that others look at in order, or that are short, stay.
// RUN: tilec opt %s --passes wrap-rows --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf16, strided<[?, 1]>>
!v = memref<?xf16, strided<[1]>>

// CHECK-LABEL: @aligned
// CHECK-NOT: wrapped
func.func @aligned(%a: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}, %b: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// Weights would be loaded element by element.
// CHECK-LABEL: @weights
// CHECK-NOT: wrapped
func.func @weights(%a: !m, %w: !v {tile.facts = {align = 16 : i32}}, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  %y = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f16, options = {}} : (!v, index) -> tensor<4096xf16>
  %z = arith.mulf %x, %y : tensor<4096xf16>
  "tile.store"(%z, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// A row of another number begins elsewhere.
// CHECK-LABEL: @another_row
// CHECK-NOT: wrapped
func.func @another_row(%a: !m, %b: !m, %from: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %from, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// A stripe of a row.
// CHECK-LABEL: @from_another_column
// CHECK-NOT: wrapped
func.func @from_another_column(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c1) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// The longest vectors would straddle the tile's end.
// CHECK-LABEL: @odd_tile
// CHECK-NOT: wrapped
func.func @odd_tile(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4099xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4099xf16>, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @several_rows
// CHECK-NOT: wrapped
func.func @several_rows(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<2x256xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<2x256xf16>, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @scan
// CHECK-NOT: wrapped
func.func @scan(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  %s = "tile.scan"(%x) ({
  ^bb0(%p: f16, %q: f16):
    %r = arith.addf %p, %q : f16
    gpu.yield %r : f16
  }) {axis = 0 : i32, reverse = false} : (tensor<4096xf16>) -> tensor<4096xf16>
  "tile.store"(%s, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// What a loop over rows carries: each row begins elsewhere.
// CHECK-LABEL: @over_rows
// CHECK-NOT: wrapped
func.func @over_rows(%a: !m, %b: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zeros = arith.constant dense<0.0> : tensor<4096xf16>
  %sum = scf.for %row = %c0 to %n step %c1 iter_args(%before = %zeros) -> (tensor<4096xf16>) {
    %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
    %more = arith.addf %before, %x : tensor<4096xf16>
    scf.yield %more : tensor<4096xf16>
  }
  "tile.store"(%sum, %b, %c0, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// Parts of a row that begin at any multiple of eight of its elements.
// CHECK-LABEL: @steps_of_half_a_sector
// CHECK-NOT: wrapped
func.func @steps_of_half_a_sector(%a: !m, %b: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  scf.for %at = %c0 to %n step %c8 {
    %x = "tile.load"(%a, %row, %at) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
    "tile.store"(%x, %b, %row, %at) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  }
  return
}

// A warp that walks along its row would wait for the cut vector in each iteration.
// CHECK-LABEL: @along_a_row
// CHECK-NOT: wrapped
func.func @along_a_row(%a: !m, %b: !m, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %zeros = arith.constant dense<0.0> : tensor<2048xf16>
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %sum = scf.for %at = %c0 to %n step %c2048 iter_args(%before = %zeros) -> (tensor<2048xf16>) {
    %x = "tile.load"(%a, %row, %at) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<2048xf16>
    %more = arith.addf %before, %x : tensor<2048xf16>
    scf.yield %more : tensor<2048xf16>
  }
  "tile.store"(%sum, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<2048xf16>, !m, index, index) -> ()
  return
}

// Where the row's number is loaded behind the first access, the shift would come too late.
// CHECK-LABEL: @known_late
// CHECK-NOT: wrapped
func.func @known_late(%a: !m, %b: !m, %at: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %id = "tile.program_id"() {axis = 0 : i32} : () -> index
  %one = "tile.load"(%at, %id) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<4096xi32>
  %two = arith.addi %i, %i : tensor<4096xi32>
  %number = tensor.extract %one[] : tensor<i32>
  %row = arith.index_cast %number : i32 to index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<4096xf16>
  %f = arith.sitofp %two : tensor<4096xi32> to tensor<4096xf16>
  %y = arith.addf %x, %f : tensor<4096xf16>
  "tile.store"(%y, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<4096xf16>, !m, index, index) -> ()
  return
}

// Of a row that gives a warp one vector a thread, edges take more than accesses of an element each.
// CHECK-LABEL: @short
// CHECK-NOT: wrapped
func.func @short(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (!m, index, index) -> tensor<256xf16>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<256xf16>, !m, index, index) -> ()
  return
}
