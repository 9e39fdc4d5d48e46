// Orders of tiles, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @orders
func.func @orders(%linear: i32, %rows: i32, %columns: i32) {
  // CHECK: "gpu_tile.tile_order"(%{{.*}}) {group = 8 : i32, order = "grouped"} : (i32, i32, i32) -> (i32, i32)
  %m, %n = "gpu_tile.tile_order"(%linear, %rows, %columns) {order = "grouped", group = 8 : i32} : (i32, i32, i32) -> (i32, i32)
  // CHECK: "gpu_tile.tile_order"(%{{.*}}) {group = 1 : i32, order = "rows"}
  %p, %q = "gpu_tile.tile_order"(%linear, %rows, %columns) {order = "rows", group = 1 : i32} : (i32, i32, i32) -> (i32, i32)
  // CHECK: "gpu_tile.cta_id"() : () -> i32
  %first = "gpu_tile.cta_id"() : () -> i32
  // CHECK: "gpu_tile.num_ctas"() : () -> i32
  %step = "gpu_tile.num_ctas"() : () -> i32
  // CHECK: "gpu_tile.program_in_cta"() : () -> i32
  %mine = "gpu_tile.program_in_cta"() : () -> i32
  // CHECK: "gpu_tile.programs_in_cta"() : () -> i32
  %warps = "gpu_tile.programs_in_cta"() : () -> i32
  // CHECK: "gpu_tile.griddepcontrol"() {kind = "launch_dependents"} : () -> ()
  "gpu_tile.griddepcontrol"() {kind = "launch_dependents"} : () -> ()
  // CHECK: "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
  "gpu_tile.griddepcontrol"() {kind = "wait"} : () -> ()
  return
}
