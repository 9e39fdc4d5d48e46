// Arrays out of lists and parts of them, printed as they were read.
// RUN: %roundtrip

// CHECK-LABEL: @arrays_of_a_list
func.func @arrays_of_a_list(%xs: memref<?xmemref<?x?xbf16, strided<[?, 1]>>>, %i: index) {
  // CHECK: "tile.array_at"(%{{.*}}, %{{.*}}) {options = {}} : (memref<?xmemref<?x?xbf16, strided<[?, 1]>>>, index) -> memref<?x?xbf16, strided<[?, 1]>>
  %x = "tile.array_at"(%xs, %i) {options = {}} : (memref<?xmemref<?x?xbf16, strided<[?, 1]>>>, index) -> memref<?x?xbf16, strided<[?, 1]>>
  %t = "tile.load"(%x, %i, %i) {dims = array<i32: 0, 1>, padding = 0.0 : bf16, options = {}} : (memref<?x?xbf16, strided<[?, 1]>>, index, index) -> tensor<8x8xbf16>
  return
}

// CHECK-LABEL: @parts
func.func @parts(%xs: memref<?xmemref<?xf32, strided<[1]>>>, %pid: index) {
  // CHECK: "tile.find_part"(%{{.*}}, %{{.*}}) {elements = 4096 : i32} : (memref<?xmemref<?xf32, strided<[1]>>>, index) -> (index, index)
  %i, %start = "tile.find_part"(%xs, %pid) {elements = 4096 : i32} : (memref<?xmemref<?xf32, strided<[1]>>>, index) -> (index, index)
  // CHECK: {options = {inside = true}}
  %x = "tile.array_at"(%xs, %i) {options = {inside = true}} : (memref<?xmemref<?xf32, strided<[1]>>>, index) -> memref<?xf32, strided<[1]>>
  return
}
