// A load of vectors of which one may be cut: both ways leave whole words, so that no element is
// taken out of them, which would wait for the load, before the next array's is issued.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!h = memref<?xbf16, strided<[1]>>
!t = tensor<256xbf16, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>
!w = tensor<256xf32, #gpu_tile.layout<"T(32):(8@0) V(8):(1@0)">>

// CHECK-LABEL: llvm.func @added
// CHECK:       %[[X:.+]]:4 = scf.if %{{.+}} -> (i32, i32, i32, i32)
// CHECK:       llvm.load {{.*}} -> vector<4xi32>
// CHECK-NOT:   llvm.bitcast
// CHECK:       } else {
// CHECK:       ld.global.b16
// CHECK:       llvm.bitcast %{{.+}} : vector<2xi16> to i32
// CHECK:       llvm.bitcast %[[X]]#0 : i32 to vector<2xi16>
func.func @added(%x: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}},
                 %y: memref<?xf32, strided<[1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!h, index) -> !t
  %w = arith.extf %v : !t to !w
  "tile.store"(%w, %y, %c0) {dims = array<i32: 0>, options = {}} : (!w, memref<?xf32, strided<[1]>>, index) -> ()
  return
}
