// A tile in a matrix instruction's registers leaves through a buffer and the copy engine.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x128xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!row = tensor<64x128xbf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,8):(1@1,8@0)">>

// CHECK-LABEL: @store
// CHECK: %[[MAP:.*]] = "gpu_tile.make_tensor_map"(%{{.*}}) {box = array<i32: 16, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
// CHECK: %[[X:.*]] = arith.constant dense
// Two panels of one swizzle's width, a buffer for each.
// CHECK: %[[S:.*]] = "gpu_tile.alloc"() {{.*}}tensor<2x64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">
// CHECK: %[[P:.*]]:2 = "tile.split"(%[[X]]) {axis = 1 : i32}
// CHECK: %[[S0:.*]] = "gpu_tile.slot"(%[[S]], %c0_i32)
// CHECK: "gpu_tile.warp_tma_store"(%[[P]]#0, %[[S0]], %[[MAP]], %[[M:.*]], %[[N:.*]]) {pending = 1 : i32}
// CHECK: %[[RIGHT:.*]] = arith.addi %[[N]], %c64_i32 : i32
// CHECK: %[[S1:.*]] = "gpu_tile.slot"(%[[S]], %c1_i32)
// CHECK: "gpu_tile.warp_tma_store"(%[[P]]#1, %[[S1]], %[[MAP]], %[[M]], %[[RIGHT]]) {pending = 1 : i32}
// CHECK-NOT: tile.store
// CHECK: "gpu_tile.tma_wait"() {pending = 0 : i32, read = true}
// CHECK-NEXT: return
func.func @store(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// A row a thread: no conversion, but its stores would fill half of each sector. In a persistent
// kernel the copy engine does better.
// CHECK-LABEL: @scattered
// CHECK: tile.split
// CHECK: gpu_tile.warp_tma_store
// CHECK-NOT: tile.store
!lanes = tensor<128x128xbf16, #gpu_tile.layout<"T(128):(1@0) V(128):(1@1)">>
func.func @scattered(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c128 = arith.constant 128 : index
  %x = arith.constant dense<1.0> : !lanes
  %i128 = arith.constant 128 : i32
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %w = %first to %i128 step %step : i32 {
    "tile.store"(%x, %c, %c128, %c128) {dims = array<i32: 0, 1>, options = {}} : (!lanes, !m, index, index) -> ()
  }
  return
}

// The f32 sums of a warpgroup fill their sectors, a quarter of a line each.
// CHECK-LABEL: @sums
// CHECK: tile.split
// CHECK: gpu_tile.warp_tma_store
// CHECK-NOT: tile.store
!sums = tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
!f = memref<?x?xf32, strided<[?, 1]>>
func.func @sums(%c: !f {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !sums
  %i128 = arith.constant 128 : i32
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %w = %first to %i128 step %step : i32 {
    "tile.store"(%x, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!sums, !f, index, index) -> ()
  }
  return
}

// Sixteen threads have 16 bytes of a row each: whole lines.
// CHECK-LABEL: @rows
// CHECK-NOT: tma
// CHECK: tile.store
!rows = tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
func.func @rows(%c: !f {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !rows
  %i128 = arith.constant 128 : i32
  %first = "gpu_tile.cta_id"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  scf.for %w = %first to %i128 step %step : i32 {
    "tile.store"(%x, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!rows, !f, index, index) -> ()
  }
  return
}

// No next program hides the copy here, but threads would write 16 bytes of a sector at a time.
// CHECK-LABEL: @once
// CHECK: gpu_tile.warp_tma_store
// CHECK-NOT: tile.store
func.func @once(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c128 = arith.constant 128 : index
  %x = arith.constant dense<1.0> : !lanes
  "tile.store"(%x, %c, %c128, %c128) {dims = array<i32: 0, 1>, options = {}} : (!lanes, !m, index, index) -> ()
  return
}

// Another branch may write the array otherwise: no program does both.
// CHECK-LABEL: @partly
// CHECK: scf.if
// CHECK: gpu_tile.warp_tma_store
// CHECK-NOT: tile.store
// CHECK: else
// CHECK: tile.scatter
!ok = tensor<64x128xi1, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!at = tensor<64x128xi32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
func.func @partly(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %at: !at, %ok: !ok, %whole: i1) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  scf.if %whole {
    %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
    "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  } else {
    "tile.scatter"(%x, %c, %ok, %at, %at) {options = {}} : (!acc, !m, !ok, !at, !at) -> ()
  }
  return
}
