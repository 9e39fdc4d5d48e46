// Scores that a branch may mask on their way to be a left operand: whole rows in one warp, so that
// they are its fragments as they are.
// RUN: tilec opt %s --passes select-mma,infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!m = memref<?x64xbf16, strided<[64, 1]>>
!a = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// CHECK-LABEL: @masked
// CHECK: %[[S:.*]] = "tile.dot"({{.*}} -> tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
// CHECK: scf.if
func.func @masked(%q: !m, %k: !m, %v: !m, %all: i1, %o: memref<?x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %query = "tile.load"(%q, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %key = "tile.load"(%k, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %value = "tile.load"(%v, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (!m, index, index) -> !a
  %s = "tile.dot"(%query, %key, %zero) {options = {}} : (!a, !a, !c) -> !c
  %p = scf.if %all -> (!c) {
    scf.yield %s : !c
  } else {
    %m = arith.mulf %s, %s : !c
    scf.yield %m : !c
  }
  %pn = arith.truncf %p : !c to !a
  %r = "tile.dot"(%pn, %value, %zero) {options = {}} : (!a, !a, !c) -> !c
  "tile.store"(%r, %o, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!c, memref<?x64xf32, strided<[64, 1]>>, index, index) -> ()
  return
}
