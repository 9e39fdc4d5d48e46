// Every rule of the ops on lists of arrays.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @array_of_an_array(%x: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.array_at' op expected a list of arrays, found memref<?xf32>}}
  %t = "tile.array_at"(%x, %i) {options = {}} : (memref<?xf32>, index) -> memref<?xf32>
  return
}

// -----
func.func @array_of_another_type(%xs: memref<?xmemref<?xf32>>, %i: index) {
  // expected-error @below {{'tile.array_at' op the result is memref<?xf16>, arrays of the list are memref<?xf32>}}
  %t = "tile.array_at"(%xs, %i) {options = {}} : (memref<?xmemref<?xf32>>, index) -> memref<?xf16>
  return
}

// -----
func.func @part_of_an_array(%x: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.find_part' op expected a list of arrays, found memref<?xf32>}}
  %n, %s = "tile.find_part"(%x, %i) {elements = 64 : i32} : (memref<?xf32>, index) -> (index, index)
  return
}

// -----
func.func @part_of_nothing(%xs: memref<?xmemref<?xf32>>, %i: index) {
  // expected-error @below {{'tile.find_part' op a part has 1 to 65536 elements, found 0}}
  %n, %s = "tile.find_part"(%xs, %i) {elements = 0 : i32} : (memref<?xmemref<?xf32>>, index) -> (index, index)
  return
}
