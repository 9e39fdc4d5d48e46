// What a load has beyond an edge: padding where somebody reads it, anything where stores leave it out.
// RUN: tilec opt %s --passes dissolve-windows --target sm_90a | filecheck %s

!a = memref<?x?xf16, strided<[?, 1]>>
!r = memref<?xf32, strided<[1]>>

// Rows of a product: the store leaves out what the load does not mask.
// CHECK-LABEL: @rows_of_a_product
// CHECK-SAME: (%[[A:.*]]: memref<?x?xf16{{.*}}>, %[[B:.*]]: memref<?x?xf16{{.*}}>, %[[C:.*]]: memref<?x?xf16{{.*}}>, %[[FIRST:[^:]*]]: index, %[[ROWS:[^:]*]]: index)
// CHECK: %[[AT:.*]] = arith.addi %[[M:.*]], %[[FIRST]]
// CHECK: %[[X:.*]] = "tile.load"(%[[A]], %[[AT]], %{{.*}})
// CHECK-NOT: arith.select
// CHECK: "tile.dot"(%[[X]],
// CHECK: %[[END:.*]] = arith.addi %[[M]], %{{.*}}
// CHECK: %[[ALL:.*]] = arith.cmpi sge, %[[ROWS]], %[[END]]
// CHECK: scf.if %[[ALL]]
// CHECK: "tile.store"(%{{.*}}, %[[C]],
// CHECK: else
// CHECK: arith.addi %[[M]], %[[FIRST]]
// CHECK-NEXT: %[[CONST:.*]] = arith.constant 2147418112
// CHECK-NEXT: arith.minsi %{{.*}}, %[[CONST]]
// CHECK: "tile.scatter"(%{{.*}}, %[[C]],
// CHECK-NOT: tile.window
func.func @rows_of_a_product(%a: !a, %b: !a, %c: !a, %first: index, %rows: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %p, %c64 : index
  %w = "tile.window"(%a, %first, %rows) {dim = 0 : i32} : (!a, index, index) -> !a
  %v = "tile.window"(%c, %first, %rows) {dim = 0 : i32} : (!a, index, index) -> !a
  %n = memref.dim %a, %c0 : !a
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf16>) {
    %x = "tile.load"(%w, %m, %k) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!a, index, index) -> tensor<64x64xf16>
    %y = "tile.load"(%b, %k, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!a, index, index) -> tensor<64x64xf16>
    %d = "tile.dot"(%x, %y, %acc) {options = {}} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
    scf.yield %d : tensor<64x64xf16>
  }
  "tile.store"(%sum, %v, %m, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf16>, !a, index, index) -> ()
  return
}

// Along k what lies outside is summed up: it must be 0.
// CHECK-LABEL: @along_a_sum
// CHECK: %[[X:.*]] = "tile.load"
// CHECK: %[[Z:.*]] = arith.select %{{.*}}, %[[X]],
// CHECK: "tile.dot"(%{{.*}}, %[[Z]],
func.func @along_a_sum(%a: !a, %b: !a, %c: !a, %first: index, %rows: index, %x: tensor<64x64xf16>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %w = "tile.window"(%b, %first, %rows) {dim = 0 : i32} : (!a, index, index) -> !a
  %v = "tile.window"(%c, %first, %rows) {dim = 0 : i32} : (!a, index, index) -> !a
  %y = "tile.load"(%w, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!a, index, index) -> tensor<64x64xf16>
  %d = "tile.dot"(%x, %y, %x) {options = {}} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  "tile.store"(%d, %v, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (tensor<64x64xf16>, !a, index, index) -> ()
  return
}

// A store that leaves out other elements: the window begins elsewhere.
// CHECK-LABEL: @another_edge
// CHECK: arith.select
func.func @another_edge(%x: !r, %y: !r, %size: index, %other: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %w = "tile.window"(%x, %size, %size) {dim = 0 : i32} : (!r, index, index) -> !r
  %v = "tile.window"(%y, %size, %other) {dim = 0 : i32} : (!r, index, index) -> !r
  %t = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<64xf32>
  "tile.store"(%t, %v, %c0) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
  return
}

// The tile that the next iteration stores was loaded where this one's counter said.
// CHECK-LABEL: @carried_to_another_place
// CHECK: arith.select
func.func @carried_to_another_place(%x: !r, %y: !r, %size: index, %t: tensor<64xf32>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %w = "tile.window"(%x, %size, %size) {dim = 0 : i32} : (!r, index, index) -> !r
  %v = "tile.window"(%y, %c64, %size) {dim = 0 : i32} : (!r, index, index) -> !r
  %r = scf.for %k = %c0 to %size step %c64 iter_args(%last = %t) -> (tensor<64xf32>) {
    "tile.store"(%last, %v, %k) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
    %next = "tile.load"(%w, %k) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  return
}

// A window of a window has both edges; one without a size ends with the array.
// CHECK-LABEL: @nested
// CHECK: %[[START:.*]] = arith.addi %[[A:arg.*]], %[[B:arg.*]] : index
// CHECK: %[[OUTER:.*]] = arith.addi %[[K:arg.*]], %[[B]] : index
// CHECK: arith.maxsi %[[OUTER]],
// CHECK: arith.minsi %[[N:arg[^,]*]],
// CHECK: arith.maxsi %[[K]],
// CHECK: arith.addi %[[K]], %[[START]]
// CHECK: "tile.load"(%arg0,
// CHECK: arith.andi
// CHECK: arith.andi
// CHECK: arith.select
func.func @nested(%x: !r, %y: !r, %a: index, %b: index, %n: index, %k: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %w = "tile.window"(%x, %a, %n) {dim = 0 : i32} : (!r, index, index) -> !r
  %v = "tile.window"(%w, %b) {dim = 0 : i32} : (!r, index) -> !r
  %t = "tile.load"(%v, %k) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<64xf32>
  "tile.store"(%t, %y, %k) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
  return
}

// A tile that is known to lie inside needs no mask.
// CHECK-LABEL: @known_to_lie_inside
// CHECK-NOT: arith.select
// CHECK-NOT: scf.if
// CHECK: return
func.func @known_to_lie_inside(%x: !r, %y: !r, %a: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %w = "tile.window"(%x, %a, %c96) {dim = 0 : i32} : (!r, index, index) -> !r
  %v = "tile.window"(%y, %a, %c96) {dim = 0 : i32} : (!r, index, index) -> !r
  %t = "tile.load"(%w, %c32) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<64xf32>
  %s = math.exp %t : tensor<64xf32>
  "tile.store"(%s, %v, %c32) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
  return
}

// One that is known to hang over needs one.
// CHECK-LABEL: @known_to_hang_over
// CHECK: arith.select
// CHECK: scf.if
func.func @known_to_hang_over(%x: !r, %y: !r, %a: index, %n: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c32 = arith.constant 32 : index
  %c95 = arith.constant 95 : index
  %w = "tile.window"(%x, %a, %c95) {dim = 0 : i32} : (!r, index, index) -> !r
  %v = "tile.window"(%y, %n, %c95) {dim = 0 : i32} : (!r, index, index) -> !r
  %t = "tile.load"(%w, %c32) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<64xf32>
  "tile.store"(%t, %y, %c32) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
  "tile.store"(%t, %v, %c32) {dims = array<i32: 0>, options = {}} : (tensor<64xf32>, !r, index) -> ()
  return
}
