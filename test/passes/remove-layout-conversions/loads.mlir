// Small tiles of what is only read: each thread loads what it needs.
// RUN: tilec opt %s --passes remove-layout-conversions --target sm_80 | filecheck %s

!rows = memref<?xi32, strided<[1]>>
!a = tensor<128xi32, #gpu_tile.layout<"T(128):(1@0) V():()">>
!b = tensor<128xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V(8):(16@0)">>
#ld = #gpu_tile.layout<"T(8,16):(8@1,1@0) V(8,16):(1@1,16@0)">
!many = tensor<256xi32, #gpu_tile.layout<"T(128):(1@0) V(2):(128@0)">>
!each_row = tensor<256xi32, #gpu_tile.layout<"T(8,16):(0,1@0) V(16):(16@0)">>
!few = tensor<32xi32, #gpu_tile.layout<"T(32,4):(1@0,0) V():()">>
#once = #gpu_tile.layout<"T(128):(4@0) V(4):(1@0)">
!both = tensor<512xf32, #gpu_tile.layout<"T(64,2):(8@0,0) V(8):(1@0)">>
!each = tensor<32xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">>
!across = tensor<32x32xbf16, #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8):(1@1)">>
!down = tensor<32x32xbf16, #gpu_tile.layout<"T(4,32):(8@0,1@1) V(8):(1@0)">>

// CHECK-LABEL: @again
// CHECK: %[[LOAD:.*]] = "tile.load"{{.*}} -> tensor<32xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">>
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[LOAD]], %[[LOAD]]
// CHECK-NOT: convert_layout
// CHECK: return %[[SUM]]
func.func @again(%x: !rows) -> !each attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!rows, index) -> !few
  %s = arith.addi %t, %t : !few
  %y = "gpu_tile.convert_layout"(%s) : (!few) -> !each
  return %y : !each
}

// Eight accesses a thread are no cheaper than a conversion.
// CHECK-LABEL: @many
// CHECK: gpu_tile.convert_layout
func.func @many(%x: !rows) -> !b attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!rows, index) -> !a
  %y = "gpu_tile.convert_layout"(%t) : (!a) -> !b
  return %y : !b
}

// A larger tile, for as many accesses a thread as there were: 16 bytes for 8.
// CHECK-LABEL: @row
// CHECK: %[[LOAD:.*]] = "tile.load"{{.*}} -> tensor<512xbf16, #gpu_tile.layout<"T(64,2):(8@0,0) V(8):(1@0)">>
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[LOAD]]
// CHECK-NEXT: return %[[WIDE]]
func.func @row(%x: memref<?xbf16, strided<[1]>>) -> !both attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (memref<?xbf16, strided<[1]>>, index) -> tensor<512xbf16, #once>
  %w = arith.extf %t : tensor<512xbf16, #once> to tensor<512xf32, #once>
  %y = "gpu_tile.convert_layout"(%w) : (tensor<512xf32, #once>) -> !both
  return %y : !both
}

// Of 4 bytes it takes two for one.
// CHECK-LABEL: @row_of_words
// CHECK: gpu_tile.convert_layout
func.func @row_of_words(%x: memref<?xf32, strided<[1]>>) -> !both attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32, strided<[1]>>, index) -> tensor<512xf32, #once>
  %y = "gpu_tile.convert_layout"(%t) : (tensor<512xf32, #once>) -> !both
  return %y : !both
}

// Eight neighbours of a column are eight accesses of rows in memory.
// CHECK-LABEL: @turned
// CHECK: gpu_tile.convert_layout
func.func @turned(%x: memref<?x?xbf16, strided<[?, 1]>>) -> !down attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero, %zero) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> !across
  %y = "gpu_tile.convert_layout"(%t) : (!across) -> !down
  return %y : !down
}

// But the numbers of rows for products are loaded so: a load role converts nothing.
// CHECK-LABEL: @rows_of_products
// CHECK-NOT: convert_layout
// CHECK: tile.dot
func.func @rows_of_products(%x: !rows, %a: memref<?x?xbf16, strided<[?, 1]>>, %w: tensor<64x64xbf16, #ld>, %column: tensor<256x64xi32, #ld>, %acc: tensor<256x64xf32, #ld>) -> tensor<256x64xf32, #ld> attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %ok = arith.constant dense<true> : tensor<256x64xi1, #ld>
  %none = arith.constant dense<0.0> : tensor<256x64xbf16, #ld>
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!rows, index) -> !many
  %y = "gpu_tile.convert_layout"(%t) : (!many) -> !each_row
  %row = "tile.broadcast"(%y) {dims = array<i32: 0>} : (!each_row) -> tensor<256x64xi32, #ld>
  %g = "tile.gather"(%a, %ok, %none, %row, %column) {options = {run = array<i32: 1, 8>}} : (memref<?x?xbf16, strided<[?, 1]>>, tensor<256x64xi1, #ld>, tensor<256x64xbf16, #ld>, tensor<256x64xi32, #ld>, tensor<256x64xi32, #ld>) -> tensor<256x64xbf16, #ld>
  %sum = "tile.dot"(%g, %w, %acc) {options = {instruction = "mma.m16n8k16.f32.bf16.bf16"}} : (tensor<256x64xbf16, #ld>, tensor<64x64xbf16, #ld>, tensor<256x64xf32, #ld>) -> tensor<256x64xf32, #ld>
  return %sum : tensor<256x64xf32, #ld>
}

// What the kernel writes is not read twice.
// CHECK-LABEL: @written
// CHECK: gpu_tile.convert_layout
func.func @written(%x: !rows) -> !each attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!rows, index) -> !few
  "tile.store"(%t, %x, %zero) {dims = array<i32: 0>, options = {}} : (!few, !rows, index) -> ()
  %y = "gpu_tile.convert_layout"(%t) : (!few) -> !each
  return %y : !each
}

// So it is of numbers that are gathered, once for two conversions; what makes their places in front
// of the loop is not counted.
// CHECK-LABEL: @gathered
// CHECK: scf.for
// CHECK: %[[T:.*]] = "tile.gather"{{.*}} -> tensor<32xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">>
// CHECK-NOT: tile.gather
// CHECK-NOT: convert_layout
// CHECK: arith.addi %[[T]], %[[T]]
func.func @gathered(%x: !rows, %row: i32, %begin: i32, %end: i32, %n: index) -> !each attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : !each
  %none = arith.constant dense<0> : !few
  %along = "tile.iota"() {axis = 0 : i32} : () -> !few
  %rows = tensor.splat %row : !few
  %begins = tensor.splat %begin : !few
  %ends = tensor.splat %end : !few
  %twice = arith.muli %rows, %rows : !few
  %first = arith.addi %twice, %begins : !few
  %place = arith.addi %first, %along : !few
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zero) -> (!each) {
    %i32 = arith.index_cast %i : index to i32
    %from = tensor.splat %i32 : !few
    %at = arith.addi %place, %from : !few
    %ok = arith.cmpi slt, %at, %ends : !few
    %t = "tile.gather"(%x, %ok, %none, %at) {options = {}} : (!rows, tensor<32xi1, #gpu_tile.layout<"T(32,4):(1@0,0) V():()">>, !few, !few) -> !few
    %a = "gpu_tile.convert_layout"(%t) : (!few) -> !each
    %b = "gpu_tile.convert_layout"(%t) : (!few) -> !each
    %both = arith.addi %a, %b : !each
    %next = arith.addi %old, %both : !each
    scf.yield %next : !each
  }
  return %r : !each
}

// Not through a broadcast, behind which more threads hold it.
// CHECK-LABEL: @repeated
// CHECK: gpu_tile.convert_layout
func.func @repeated(%x: !rows) -> tensor<32x1xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">> attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %t = "tile.load"(%x, %zero) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (!rows, index) -> !few
  %b = "tile.broadcast"(%t) {dims = array<i32: 0>} : (!few) -> tensor<32x1xi32, #gpu_tile.layout<"T(32,4):(1@0,0) V():()">>
  %y = "gpu_tile.convert_layout"(%b) : (tensor<32x1xi32, #gpu_tile.layout<"T(32,4):(1@0,0) V():()">>) -> tensor<32x1xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">>
  return %y : tensor<32x1xi32, #gpu_tile.layout<"T(8,16):(1@0,0) V(4):(8@0)">>
}
