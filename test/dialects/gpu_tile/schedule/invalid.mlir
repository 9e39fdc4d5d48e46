// Every rule of the order of tiles.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @order_of_groups_of_none(%i: i32) {
  // expected-error @below {{'gpu_tile.tile_order' op group must be positive, found 0}}
  %m, %n = "gpu_tile.tile_order"(%i, %i, %i) {order = "grouped", group = 0 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}

// -----
func.func @order_unknown(%i: i32) {
  // expected-error @below {{'gpu_tile.tile_order' op attribute 'order' must be one of 'grouped', 'rows', found "hilbert"}}
  %m, %n = "gpu_tile.tile_order"(%i, %i, %i) {order = "hilbert", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}
