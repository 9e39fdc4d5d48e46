// What takes a whole array takes no window.
// RUN: tilec opt %s --passes dissolve-windows --target sm_90a --split-input-file --verify-diagnostics

!r = memref<?xf32, strided<[1]>>
func.func @a_tensor_map(%x: !r, %a: index) attributes {tile.kernel} {
  %w = "tile.window"(%x, %a) {dim = 0 : i32} : (!r, index) -> !r
  // expected-error @below {{'tile.misalignment' takes a whole array, no window}}
  %s = "tile.misalignment"(%w, %a) {bytes = 16 : i32} : (!r, index) -> index
  return
}
