// A tile in a matrix instruction's registers leaves through a buffer and the copy engine.
// RUN: tilec opt %s --passes insert-tensor-stores --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!acc = tensor<64x128xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,16):(1@1,8@0,8@1)">>
!row = tensor<64x128xbf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,8):(1@1,8@0)">>

// CHECK-LABEL: @store
// CHECK: %[[MAP:.*]] = "gpu_tile.make_tensor_map"(%[[C:.*]]) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
// CHECK: %[[X:.*]] = arith.constant dense
// CHECK: %[[S:.*]] = "gpu_tile.alloc"() {{.*}}#gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">
// CHECK: "gpu_tile.tma_wait"() {pending = 0 : i32, read = false}
// CHECK: "gpu_tile.buffer_store"(%[[X]], %[[S]])
// CHECK: "gpu_tile.tma_store"(%[[S]], %[[MAP]], %{{.*}}, %{{.*}}) {combine = "none"}
// CHECK: "gpu_tile.tma_commit"
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
