// Stores of a kernel's next program take the slots from the first on: a warp waits for the store that
// had its slot last, whichever program's.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x96xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,12):(1@1,8@0,8@1)">>
!row = tensor<64x96xbf16, #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8,2,3):(1@1,32@0,32@1)">>

// CHECK-LABEL: @three
// CHECK: "gpu_tile.alloc"() {{.*}}tensor<3x64x32xbf16>
// CHECK-COUNT-3: "gpu_tile.warp_tma_store"({{.*}}) {pending = 2 : i32}
func.func @three(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// -----

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x160xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,20):(1@1,8@0,8@1)">>
!row = tensor<64x160xbf16, #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8,2,5):(1@1,32@0,32@1)">>

// CHECK-LABEL: @five
// CHECK: "gpu_tile.alloc"() {{.*}}tensor<2x64x32xbf16>
// CHECK: "gpu_tile.warp_tma_store"({{.*}}) {pending = 0 : i32}
// CHECK: "gpu_tile.warp_tma_store"({{.*}}) {pending = 2 : i32}
// CHECK-COUNT-3: "gpu_tile.warp_tma_store"({{.*}}) {pending = 1 : i32}
func.func @five(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  %y = "gpu_tile.convert_layout"(%x) : (!acc) -> !row
  "tile.store"(%y, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!row, !m, index, index) -> ()
  return
}

// -----

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x112xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,14):(1@1,8@0,8@1)">>

// Rows of seven sectors leave whole, without a swizzle: halves would write one sector twice, and
// threads half sectors, which no conversion mends: no layout has whole rows of 112.
// CHECK-LABEL: @whole
// CHECK: "gpu_tile.make_tensor_map"({{.*}}box = array<i32: 16, 112>{{.*}}swizzle = "none"
// CHECK: "gpu_tile.alloc"() {{.*}}tensor<1x64x112xbf16>, #gpu_tile.shared<"(64,112):(112,1)">
// CHECK: "gpu_tile.warp_tma_store"({{.*}}) {pending = 0 : i32}
func.func @whole(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : index
  %x = arith.constant dense<1.0> : !acc
  "tile.store"(%x, %c, %c64, %c64) {dims = array<i32: 0, 1>, options = {}} : (!acc, !m, index, index) -> ()
  return
}
