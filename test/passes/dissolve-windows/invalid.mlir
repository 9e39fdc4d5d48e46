// Windows are gone once tiles have layouts, and nothing but accesses takes one.
// RUN: tilec opt %s --passes schedule-programs --target sm_90a --split-input-file --verify-diagnostics

!r = memref<?xf32, strided<[1]>>
func.func @with_layouts(%x: !r, %a: index) attributes {tile.kernel} {
  // expected-error @below {{a window is left}}
  %w = "tile.window"(%x, %a) {dim = 0 : i32} : (!r, index) -> !r
  %t = "tile.load"(%w, %a) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!r, index) -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  return
}
