// The order of tiles, printed as it was read.
// RUN: %roundtrip

// CHECK-LABEL: @grouped_and_by_rows
func.func @grouped_and_by_rows(%i: i32, %rows: i32, %columns: i32) {
  // CHECK: "gpu_tile.tile_order"(%{{.*}}, %{{.*}}, %{{.*}}) {group = 8 : i32, order = "grouped"} : (i32, i32, i32) -> (i32, i32)
  %m, %n = "gpu_tile.tile_order"(%i, %rows, %columns) {order = "grouped", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)
  // CHECK: order = "rows"
  %p, %q = "gpu_tile.tile_order"(%i, %rows, %columns) {order = "rows", group = 1 : i32} : (i32, i32, i32) -> (i32, i32)
  return
}
