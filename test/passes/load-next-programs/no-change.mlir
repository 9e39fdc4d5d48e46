// Programs of several warps, rows that take too many registers, whole warps that share nothing with other programs, and
// rows whose elements come one by one in less than a register stay as they are.
// RUN: tilec opt %s --passes pack-programs,load-next-programs --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
!s = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>
!t = tensor<1024xf32, #gpu_tile.layout<"T(32):(1@0) V(32):(32@0)">>

// CHECK-LABEL: @long
// CHECK-NOT: iter_args
func.func @long(%a: !m, %w: !v, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %scale = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  %y = arith.mulf %x, %scale : !t
  "tile.store"(%y, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @persistent
// CHECK-NOT: iter_args
func.func @persistent(%a: !m, %b: !m) attributes {tile.kernel, tile.persistent = false} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @shares_nothing
// CHECK-NOT: iter_args
func.func @shares_nothing(%a: !m, %b: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !s
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!s, !m, index, index) -> ()
  return
}

// CHECK-LABEL: @apart
// CHECK-NOT: iter_args
func.func @apart(%a: memref<?x?xf16, strided<[?, 1]>>, %b: memref<?x?xf16, strided<[?, 1]>>) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f16, options = {}} : (memref<?x?xf16, strided<[?, 1]>>, index, index) -> tensor<32xf16, #gpu_tile.layout<"T(8):(1@0) V(4):(8@0)">>
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<32xf16, #gpu_tile.layout<"T(8):(1@0) V(4):(8@0)">>, memref<?x?xf16, strided<[?, 1]>>, index, index) -> ()
  return
}
