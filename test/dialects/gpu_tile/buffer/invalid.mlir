// Every rule of shared-memory buffers.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @alloc_layout_is_for_another_shape() {
  // expected-error @below {{'gpu_tile.alloc' op layout is for 64x32, the tile is 64x64}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,32):(32,1)">>
  return
}

// -----
func.func @alloc_offset_is_not_aligned() {
  // expected-error @below {{'gpu_tile.alloc' op offset 8 is no multiple of 16}}
  %b = "gpu_tile.alloc"() {options = {offset = 8 : i32}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
  return
}

// -----
func.func @alloc_offset_of_a_swizzled_buffer_is_not_aligned() {
  // expected-error @below {{'gpu_tile.alloc' op offset 512 is no multiple of 1024}}
  %b = "gpu_tile.alloc"() {options = {offset = 512 : i32}} : () -> !gpu_tile.buffer<tensor<8x64xf16>, #gpu_tile.shared<"S<3,4,3> o (8,64):(64,1)">>
  return
}

// -----
func.func @alloc_offset_is_negative() {
  // expected-error @below {{'gpu_tile.alloc' op offset -16 is no multiple of 16}}
  %b = "gpu_tile.alloc"() {options = {offset = -16 : i32}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
  return
}

// -----
func.func @alloc_unknown_option() {
  // expected-error @below {{'gpu_tile.alloc' op attribute 'options' has the unknown option 'align'; known: offset}}
  %b = "gpu_tile.alloc"() {options = {align = 8 : i32}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
  return
}

// -----
func.func @alloc_shared_layout_is_malformed() {
  // expected-error @below {{'gpu_tile.alloc' op malformed shared layout '(64)'; expected e.g. '(128,64):(64,1)'}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64)">>
  return
}

// -----
func.func @alloc_under_a_register_layout() {
  // expected-error @below {{'gpu_tile.alloc' op expected a shared-memory buffer, found !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
func.func @alloc_of_a_tile() {
  // expected-error @below {{expected base type 'gpu_tile.buffer' but got 'builtin.tensor'}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> tensor<64xf32>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
func.func @view_offset_missing(%b: !b, %i: i32) {
  // expected-error @below {{'gpu_tile.view' op expected one offset per dimension (2), found 1}}
  %v = "gpu_tile.view"(%b, %i) : (!b, i32) -> !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
func.func @view_changes_the_layout(%b: !b, %i: i32) {
  // expected-error @below {{'gpu_tile.view' op a view keeps its buffer's layout and element type}}
  %v = "gpu_tile.view"(%b, %i, %i) : (!b, i32, i32) -> !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
func.func @view_is_larger_than_its_buffer(%b: !b, %i: i32) {
  // expected-error @below {{'gpu_tile.view' op view 64x65 does not fit in 64x64}}
  %v = "gpu_tile.view"(%b, %i, %i) : (!b, i32, i32) -> !gpu_tile.buffer<tensor<64x65xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
func.func @view_of_another_rank(%b: !b, %i: i32) {
  // expected-error @below {{'gpu_tile.view' op view 64 does not fit in 64x64}}
  %v = "gpu_tile.view"(%b, %i, %i) : (!b, i32, i32) -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(64,1)">>
func.func @load_into_another_shape(%b: !b) {
  // expected-error @below {{'gpu_tile.buffer_load' op tile is 64x32, buffer 64x64}}
  %t = "gpu_tile.buffer_load"(%b) : (!b) -> tensor<64x32xf32, #gpu_tile.layout<"T(32):(1@1) V(64):(1@0)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @load_of_another_element_type(%b: !b) {
  // expected-error @below {{'gpu_tile.buffer_load' op element types differ: tile i32, buffer f32}}
  %t = "gpu_tile.buffer_load"(%b) : (!b) -> tensor<64xi32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @load_without_a_layout(%b: !b) {
  // expected-error @below {{'gpu_tile.buffer_load' op expected a tile with a #gpu_tile.layout, found no layout}}
  %t = "gpu_tile.buffer_load"(%b) : (!b) -> tensor<64xf32>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @store_of_another_shape(%b: !b, %t: tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>) {
  // expected-error @below {{'gpu_tile.buffer_store' op tile is 32, buffer 64}}
  "gpu_tile.buffer_store"(%t, %b) : (tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>, !b) -> ()
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
func.func @store_of_another_element_type(%b: !b, %t: tensor<64xf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>) {
  // expected-error @below {{'gpu_tile.buffer_store' op element types differ: tile f16, buffer f32}}
  "gpu_tile.buffer_store"(%t, %b) : (tensor<64xf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>, !b) -> ()
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @gather_axis_out_of_range(%b: !b, %i: !i) {
  // expected-error @below {{'gpu_tile.buffer_gather' op axis 1 is out of range for rank 1}}
  %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 1 : i32} : (!b, !i) -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
!i = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @gather_by_floats(%b: !b, %i: !i) {
  // expected-error @below {{'gpu_tile.buffer_gather' op indices must be integers, found f32}}
  %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 0 : i32} : (!b, !i) -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @gather_result_of_another_shape(%b: !b, %i: !i) {
  // expected-error @below {{'gpu_tile.buffer_gather' op result is 64, indices 32}}
  %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 0 : i32} : (!b, !i) -> tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>
!i = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
func.func @gather_result_of_another_element_type(%b: !b, %i: !i) {
  // expected-error @below {{'gpu_tile.buffer_gather' op element types differ: buffer f32, result f16}}
  %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 0 : i32} : (!b, !i) -> tensor<32xf16, #gpu_tile.layout<"T(32):(1@0) V():()">>
  return
}

// -----
func.func @reshape_view_of_padded_rows(%b: !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(68,1)">>) {
  // expected-error @below {{'gpu_tile.reshape_view' op layout (8,64):(68,1) of 8x64 is not dense and row-major}}
  %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(68,1)">>) -> !gpu_tile.buffer<tensor<512xf32>, #gpu_tile.shared<"(512):(1)">>
  return
}

// -----
func.func @reshape_view_to_fewer_elements(%b: !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>) {
  // expected-error @below {{'gpu_tile.reshape_view' op 8x64 and 256 hold different elements}}
  %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>) -> !gpu_tile.buffer<tensor<256xf32>, #gpu_tile.shared<"(256):(1)">>
  return
}

// -----
func.func @alloc_tensor_layout_is_malformed() {
  // expected-error @below {{'gpu_tile.alloc' op malformed tensor-memory layout '(64)'; expected e.g. '(128,256):(1@lane,1@col)'}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64xf32>, #gpu_tile.tmem<"(64)">>
  return
}

// -----
func.func @alloc_tensor_layout_has_no_unit() {
  // expected-error @below {{'gpu_tile.alloc' op tensor-memory layout '(128,64):(1@lane,1)': malformed part 64:1}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1)">>
  return
}

// -----
func.func @alloc_past_tensor_memory() {
  // expected-error @below {{'gpu_tile.alloc' op tensor-memory layout '(256,64):(1@lane,1@col)' takes 256 lanes and 64 columns of 128 and 512}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<256x64xf32>, #gpu_tile.tmem<"(256,64):(1@lane,1@col)">>
  return
}

// -----
func.func @alloc_of_wide_elements() {
  // expected-error @below {{'gpu_tile.alloc' op tensor memory has columns of 32 bits, found f64}}
  %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<128x64xf64>, #gpu_tile.tmem<"(128,64):(1@lane,2@col)">>
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<128x64xf32, #gpu_tile.layout<"T(64,2):(1@0,32@1) V(2,32):(64@0,1@1)">>
func.func @load_across_lanes(%b: !t) {
  // expected-error @below {{'gpu_tile.buffer_load' op registers of layout T(64,2):(1@0,32@1) V(2,32):(64@0,1@1) lie 64 lanes from their warp's first}}
  %l = "gpu_tile.buffer_load"(%b) : (!t) -> !l
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<128x64xf32, #gpu_tile.layout<"T(2,64):(32@1,1@0) V(2,32):(64@0,1@1)">>
func.func @load_in_no_shape(%b: !t) {
  // expected-error @below {{'gpu_tile.buffer_load' op no shape of tcgen05.ld has the lanes of a warp of layout T(2,64):(32@1,1@0) V(2,32):(64@0,1@1) at (0, 32), (1, 0), (2, 0), (4, 0), (8, 0) of (lane, column)}}
  %l = "gpu_tile.buffer_load"(%b) : (!t) -> !l
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x60xf32>, #gpu_tile.tmem<"(128,60):(1@lane,1@col)">>
!l = tensor<128x60xf32, #gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">>
func.func @load_of_phantoms(%b: !t) {
  // expected-error @below {{'gpu_tile.buffer_load' op layout T(128):(1@0) V(64):(1@1) reaches past the tile; tensor memory has no bounds}}
  %l = "gpu_tile.buffer_load"(%b) : (!t) -> !l
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf16>, #gpu_tile.tmem<"(128,64):(1@lane,16@bit)">>
!l = tensor<128x64xf16, #gpu_tile.layout<"T(128,2):(1@0,1@1) V(32):(2@1)">>
func.func @load_of_shared_columns(%b: !t) {
  // expected-error @below {{'gpu_tile.buffer_load' op threads of layout T(128,2):(1@0,1@1) V(32):(2@1) share a column of 32 bits}}
  %l = "gpu_tile.buffer_load"(%b) : (!t) -> !l
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<128x64xf32, #gpu_tile.layout<"T(128,2):(1@0,0) V(64):(1@1)">>
func.func @store_of_copies(%l: !l, %b: !t) {
  // expected-error @below {{'gpu_tile.buffer_store' op several threads hold copies of what goes to tensor memory: tensor<128x64xf32, }}
  "gpu_tile.buffer_store"(%l, %b) : (!l, !t) -> ()
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x32xf32>, #gpu_tile.shared<"(64,32):(36,1)">>
func.func @transpose_of_one_dimension(%b: !b) {
  // expected-error @below {{'gpu_tile.transpose_view' op [0] is no permutation of 2 dimensions}}
  %v = "gpu_tile.transpose_view"(%b) {permutation = array<i32: 0>} : (!b) -> !b
  return
}

// -----
!b = !gpu_tile.buffer<tensor<64x32xf32>, #gpu_tile.shared<"(64,32):(36,1)">>
func.func @transpose_to_another_type(%b: !b) {
  // expected-error @below {{'gpu_tile.transpose_view' op result must be !gpu_tile.buffer<tensor<32x64xf32>, #gpu_tile.shared<"(32,64):(1,36)">>}}
  %v = "gpu_tile.transpose_view"(%b) {permutation = array<i32: 1, 0>} : (!b) -> !b
  return
}

// -----
!b = !gpu_tile.buffer<tensor<3x64x32xf32>, #gpu_tile.shared<"(64,32):(36,1)">>
func.func @transpose_of_a_ring(%b: !b) {
  // expected-error @below {{'gpu_tile.transpose_view' op a ring of 3 buffers is not transposed as a whole}}
  %v = "gpu_tile.transpose_view"(%b) {permutation = array<i32: 0, 2, 1>} : (!b) -> !b
  return
}

// -----
func.func @reshape_view_with_gaps(%b: !gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>) {
  // expected-error @below {{'gpu_tile.reshape_view' op layout ((8,64)):((1,9)) of 512 has gaps}}
  %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>) -> !gpu_tile.buffer<tensor<512xf32>, #gpu_tile.shared<"((8,64)):((1,9))">>
  return
}

// -----
func.func @count_without_rows(%v: tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, %ok: tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, %b: !gpu_tile.buffer<tensor<100xi32>, #gpu_tile.shared<"(100):(1)">>) {
  // expected-error @below {{'gpu_tile.buffer_count' op buffer must have rows of i32, found 100 of i32}}
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !gpu_tile.buffer<tensor<100xi32>, #gpu_tile.shared<"(100):(1)">>) -> ()
  return
}

// -----
func.func @count_in_floats(%v: tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, %ok: tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, %b: !gpu_tile.buffer<tensor<2x100xf32>, #gpu_tile.shared<"(2,100):(100,1)">>) {
  // expected-error @below {{'gpu_tile.buffer_count' op buffer must have rows of i32, found 2x100 of f32}}
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !gpu_tile.buffer<tensor<2x100xf32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
  return
}

// -----
func.func @count_of_floats(%v: tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>, %ok: tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, %b: !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) {
  // expected-error @below {{'gpu_tile.buffer_count' op values must be i8, i16, i32 or i64, found f32}}
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
  return
}

// -----
func.func @count_in_two_layouts(%v: tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, %ok: tensor<64xi1, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>, %b: !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) {
  // expected-error @below {{'gpu_tile.buffer_count' op values and mask must have one layout}}
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>, !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
  return
}

// -----
func.func @count_without_a_layout(%v: tensor<64xi32>, %ok: tensor<64xi1>, %b: !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) {
  // expected-error @below {{'gpu_tile.buffer_count' op expected a tile with a #gpu_tile.layout, found no layout}}
  "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi32>, tensor<64xi1>, !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
  return
}
