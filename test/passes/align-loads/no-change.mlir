// Offsets that say nothing, arrays that are written, threads that hold no vectors, other takers.
// RUN: tilec opt %s --passes align-loads --target sm_80 | filecheck %s

!v = memref<?xf32, strided<[1]>>
!t = tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
!s = tensor<128xf32, #gpu_tile.layout<"T(32):(1@0) V(4):(32@0)">>

// CHECK-LABEL: @anywhere
// CHECK-NOT: shift_vectors
func.func @anywhere(%a: !v {tile.facts = {align = 16 : i32}}, %b: !v, %at: index) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %n = arith.addi %at, %c1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !t
  "tile.store"(%x, %b, %at) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// CHECK-LABEL: @written
// CHECK-NOT: shift_vectors
func.func @written(%a: !v {tile.facts = {align = 16 : i32}}) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %at = arith.muli %p, %c128 : index
  %n = arith.addi %at, %c1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !t
  "tile.store"(%x, %a, %at) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// CHECK-LABEL: @coalesced
// CHECK-NOT: shift_vectors
func.func @coalesced(%a: !v {tile.facts = {align = 16 : i32}}, %b: !v) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %at = arith.muli %p, %c128 : index
  %n = arith.addi %at, %c1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !s
  "tile.store"(%x, %b, %at) {dims = array<i32: 0>, options = {}} : (!s, !v, index) -> ()
  return
}

// No bounds: a vector may lie behind the end of what there is.
// CHECK-LABEL: @unbounded
// CHECK-NOT: shift_vectors
func.func @unbounded(%a: !v {tile.facts = {align = 16 : i32}, tile.unbounded = array<i32: 0>}, %b: !v) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %at = arith.muli %p, %c128 : index
  %n = arith.addi %at, %c1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!v, index) -> !t
  "tile.store"(%x, %b, %at) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}

// What a gather takes its places from may be wanted in another layout.
// CHECK-LABEL: @places
// CHECK-NOT: shift_vectors
func.func @places(%a: memref<?xi32, strided<[1]>> {tile.facts = {align = 16 : i32}}, %b: !v, %c: !v) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %all = arith.constant dense<true> : tensor<128xi1, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
  %zero = arith.constant dense<0.0> : !t
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %at = arith.muli %p, %c128 : index
  %n = arith.addi %at, %c1 : index
  %x = "tile.load"(%a, %n) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> tensor<128xi32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
  %y = "tile.gather"(%b, %all, %zero, %x) {options = {}} : (!v, tensor<128xi1, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>, !t, tensor<128xi32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>) -> !t
  "tile.store"(%y, %c, %at) {dims = array<i32: 0>, options = {}} : (!t, !v, index) -> ()
  return
}
