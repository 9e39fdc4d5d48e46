// Stores that stay with the threads.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x128xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!row = tensor<64x128xbf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,8):(1@1,8@0)">>

// CHECK-NOT: gpu_tile.warp_tma_store
// The last store of a row would write beyond it.
func.func @ragged_rows(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// A later load would have to wait for the copy engine.
func.func @read_too(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  %z = "tile.load"(%c, %c64, %c64) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !row
  "tile.store"(%z, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// Somebody outside the launch may read after the fence.
func.func @flags(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  "tile.fence"() {order = "acq_rel", scope = "sys"} : () -> ()
  return
}

// It lies coalesced in registers.
func.func @coalesced(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %y = arith.constant dense<1.0> : !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// Copies of two iterations could arrive in any order.
func.func @in_a_loop(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  scf.for %i = %c0 to %c64 step %c64 {
    %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
    "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  }
  return
}

// Its warps hold no whole boxes.
!wide = tensor<64x128xbf16, #gpu_tile.layout<"T(32,4):(1@1,32@1) V(64):(1@0)">>
func.func @scattered(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !wide
  %y = "gpu_tile.convert_layout"(%x) : (!wide) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// Bits are stored as bytes: fewer than eight of them a row are no empty row.
!bits = tensor<64x4xi1, #gpu_tile.layout<"T(4,32):(1@1,2@0) V(2):(1@0)">>
!bytes = tensor<64x4xi1, #gpu_tile.layout<"T(64,2):(1@0,2@1) V(2):(1@1)">>
func.func @bits(%c: memref<?x?xi1, strided<[?, 1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 16, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<true> : !bits
  %y = "gpu_tile.convert_layout"(%x) : (!bits) -> !bytes
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!bytes, memref<?x?xi1, strided<[?, 1]>>, index, index) -> ()
  return
}

// The same array, maybe in the same program.
!ok = tensor<64x128xi1, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!at = tensor<64x128xi32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
func.func @scattered_too(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %at: !at, %ok: !ok, %some: i1) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  scf.if %some {
    %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
    "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  }
  "tile.scatter"(%x, %c, %ok, %at, %at) {options = {}} : (!acc, !m, !ok, !at, !at) -> ()
  return
}
