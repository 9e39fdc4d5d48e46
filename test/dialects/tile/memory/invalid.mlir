// Every rule of the ops on global memory.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

func.func @load_padding_has_another_type(%a: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op padding has type f64, elements f32}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f64, options = {}} : (memref<?xf32>, index) -> tensor<8xf32>
  return
}

// -----
func.func @load_padding_is_no_number(%a: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op attribute 'padding' must be a typed number, found "zero"}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = "zero", options = {}} : (memref<?xf32>, index) -> tensor<8xf32>
  return
}

// -----
func.func @load_offset_missing(%a: memref<?x?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op expected one offset per array dimension (2), found 1}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32>, index) -> tensor<8xf32>
  return
}

// -----
func.func @load_dims_missing(%a: memref<?x?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op 'dims' must name one array dimension per tile dimension (2)}}
  %t = "tile.load"(%a, %i, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32>, index, index) -> tensor<8x8xf32>
  return
}

// -----
func.func @load_dims_twice_the_same(%a: memref<?x?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op 'dims' must be distinct array dimensions below 2, found [1, 1]}}
  %t = "tile.load"(%a, %i, %i) {dims = array<i32: 1, 1>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32>, index, index) -> tensor<8x8xf32>
  return
}

// -----
func.func @load_dim_out_of_range(%a: memref<?x?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op 'dims' must be distinct array dimensions below 2, found [2]}}
  %t = "tile.load"(%a, %i, %i) {dims = array<i32: 2>, padding = 0.0 : f32, options = {}} : (memref<?x?xf32>, index, index) -> tensor<8xf32>
  return
}

// -----
func.func @load_of_another_element_type(%a: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op element types differ: array f32, tile f16}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f16, options = {}} : (memref<?xf32>, index) -> tensor<8xf16>
  return
}

// -----
func.func @load_unknown_cache_hint(%a: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.load' op attribute 'options' option 'cache' must be one of 'evict_first', 'evict_last', 'no_allocate', 'streaming', found "keep"}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {cache = "keep"}} : (memref<?xf32>, index) -> tensor<8xf32>
  return
}

// -----
func.func @load_offset_is_i32(%a: memref<?xf32>, %i: i32) {
  // expected-error @below {{expected 'index' but got 'i32'}}
  %t = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (memref<?xf32>, i32) -> tensor<8xf32>
  return
}

// -----
func.func @store_offset_missing(%a: memref<?x?xf32>, %t: tensor<8xf32>, %i: index) {
  // expected-error @below {{'tile.store' op expected one offset per array dimension (2), found 1}}
  "tile.store"(%t, %a, %i) {dims = array<i32: 0>, options = {}} : (tensor<8xf32>, memref<?x?xf32>, index) -> ()
  return
}

// -----
func.func @store_of_another_element_type(%a: memref<?xf32>, %t: tensor<8xi32>, %i: index) {
  // expected-error @below {{'tile.store' op element types differ: array f32, tile i32}}
  "tile.store"(%t, %a, %i) {dims = array<i32: 0>, options = {}} : (tensor<8xi32>, memref<?xf32>, index) -> ()
  return
}

// -----
func.func @gather_mask_of_i8(%a: memref<?xf32>, %ok: tensor<8xi8>, %o: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.gather' op mask must hold i1, found i8}}
  %t = "tile.gather"(%a, %ok, %o, %i) {options = {}} : (memref<?xf32>, tensor<8xi8>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @gather_other_of_another_type(%a: memref<?xf32>, %ok: tensor<8xi1>, %o: tensor<8xf64>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.gather' op element types differ: array f32, tile f64}}
  %t = "tile.gather"(%a, %ok, %o, %i) {options = {}} : (memref<?xf32>, tensor<8xi1>, tensor<8xf64>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @gather_index_missing(%a: memref<?x?xf32>, %ok: tensor<8xi1>, %o: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.gather' op expected one index tile per array dimension (2), found 1}}
  %t = "tile.gather"(%a, %ok, %o, %i) {options = {}} : (memref<?x?xf32>, tensor<8xi1>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @gather_index_is_float(%a: memref<?xf32>, %ok: tensor<8xi1>, %o: tensor<8xf32>) {
  // expected-error @below {{'tile.gather' op index tiles must hold integers, found f32}}
  %t = "tile.gather"(%a, %ok, %o, %o) {options = {}} : (memref<?xf32>, tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @gather_shapes_differ(%a: memref<?xf32>, %ok: tensor<8xi1>, %o: tensor<8xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{'tile.gather' op tile shapes differ: 8, 8, 8, 4}}
  %t = "tile.gather"(%a, %ok, %o, %i) {options = {}} : (memref<?xf32>, tensor<8xi1>, tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>
  return
}

// -----
func.func @scatter_mask_of_i32(%a: memref<?xi32>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.scatter' op mask must hold i1, found i32}}
  "tile.scatter"(%v, %a, %v, %v) {options = {}} : (tensor<8xi32>, memref<?xi32>, tensor<8xi32>, tensor<8xi32>) -> ()
  return
}

// -----
func.func @scatter_of_another_element_type(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi64>, %i: tensor<8xi32>) {
  // expected-error @below {{'tile.scatter' op element types differ: array i32, tile i64}}
  "tile.scatter"(%v, %a, %ok, %i) {options = {}} : (tensor<8xi64>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> ()
  return
}

// -----
func.func @scatter_shapes_differ(%a: memref<?xi32>, %ok: tensor<4xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.scatter' op tile shapes differ: 4, 8, 8}}
  "tile.scatter"(%v, %a, %ok, %v) {options = {}} : (tensor<8xi32>, memref<?xi32>, tensor<4xi1>, tensor<8xi32>) -> ()
  return
}

// -----
func.func @atomic_float_add_of_integers(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_rmw' op kind 'addf' does not apply to i32}}
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @atomic_unknown_kind(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_rmw' op attribute 'kind' must be one of 'addf', 'addi'}}
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "add", options = {}, order = "relaxed", scope = "gpu"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @atomic_unknown_order(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_rmw' op attribute 'order' must be one of 'relaxed', 'acquire', 'release', 'acq_rel', found "seq_cst"}}
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "addi", options = {}, order = "seq_cst", scope = "gpu"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @atomic_mask_of_i32(%a: memref<?xi32>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_rmw' op mask must hold i1, found i32}}
  %old = "tile.atomic_rmw"(%v, %a, %v, %v) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @atomic_old_values_of_another_type(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_rmw' op element types differ: array i32, tile i64}}
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi64>
  return
}

// -----
func.func @cas_mask_of_i32(%a: memref<?xi32>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_cas' op mask must hold i1, found i32}}
  %old = "tile.atomic_cas"(%v, %v, %a, %v, %v) {order = "relaxed", scope = "gpu"} : (tensor<8xi32>, tensor<8xi32>, memref<?xi32>, tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @cas_expected_of_another_type(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>, %e: tensor<8xi64>) {
  // expected-error @below {{'tile.atomic_cas' op element types differ: array i32, tile i64}}
  %old = "tile.atomic_cas"(%e, %v, %a, %ok, %v) {order = "relaxed", scope = "gpu"} : (tensor<8xi64>, tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @cas_unknown_scope(%a: memref<?xi32>, %ok: tensor<8xi1>, %v: tensor<8xi32>) {
  // expected-error @below {{'tile.atomic_cas' op attribute 'scope' must be one of 'cta', 'cluster', 'gpu', 'sys', found "device"}}
  %old = "tile.atomic_cas"(%v, %v, %a, %ok, %v) {order = "relaxed", scope = "device"} : (tensor<8xi32>, tensor<8xi32>, memref<?xi32>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----
func.func @fence_of_unknown_order() {
  // expected-error @below {{'tile.fence' op attribute 'order' must be one of 'acq_rel', 'seq_cst', found "relaxed"}}
  "tile.fence"() {order = "relaxed", scope = "gpu"} : () -> ()
  return
}

// -----
func.func @misalignment_without_a_column(%a: memref<?x?xf16, strided<[?, 1]>>, %i: index) {
  // expected-error @below {{'tile.misalignment' op expected one offset per array dimension (2), found 1}}
  %s = "tile.misalignment"(%a, %i) {bytes = 16 : i32} : (memref<?x?xf16, strided<[?, 1]>>, index) -> index
  return
}

// -----
func.func @misalignment_of_half_an_element(%a: memref<?xf16, strided<[1]>>, %i: index) {
  // expected-error @below {{'tile.misalignment' op 'bytes' must be a power of two from 2 on, found 1}}
  %s = "tile.misalignment"(%a, %i) {bytes = 1 : i32} : (memref<?xf16, strided<[1]>>, index) -> index
  return
}

// -----
func.func @misalignment_of_24_bytes(%a: memref<?xf16, strided<[1]>>, %i: index) {
  // expected-error @below {{'tile.misalignment' op 'bytes' must be a power of two from 2 on, found 24}}
  %s = "tile.misalignment"(%a, %i) {bytes = 24 : i32} : (memref<?xf16, strided<[1]>>, index) -> index
  return
}

// -----
func.func @window_of_no_dimension(%a: memref<?x64xf32, strided<[?, 1]>>, %i: index) {
  // expected-error @below {{'tile.window' op dim 2 is out of range for an array of 2 dimensions}}
  %w = "tile.window"(%a, %i) {dim = 2 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index) -> memref<?x64xf32, strided<[?, 1]>>
  return
}

// -----
func.func @window_keeps_a_size(%a: memref<?x64xf32, strided<[?, 1]>>, %i: index) {
  // expected-error @below {{'tile.window' op result must be memref<?x?xf32, strided<[?, 1]>>, found memref<?x64xf32, strided<[?, 1]>>}}
  %w = "tile.window"(%a, %i) {dim = 1 : i32} : (memref<?x64xf32, strided<[?, 1]>>, index) -> memref<?x64xf32, strided<[?, 1]>>
  return
}
