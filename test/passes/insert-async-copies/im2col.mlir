// Gathers whose rows are digits of consecutive numbers become copies in im2col mode.
// RUN: tilec opt %s --passes select-mma,infer-layouts,stage-operands,insert-async-copies --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Digits are computed in front of the loop; offsets stand behind the coordinates.
// CHECK-LABEL: func.func @steps_and_corners
// CHECK-SAME: tile.limits = {{\[\[}}"(y.shape[1] - 1) * 2 + -1 + 1 - x.shape[1]", 127], ["(w.shape[0] - 1)", 255], ["(y.shape[2] - 1) * 1 + 3 + 1 - x.shape[2]", 127]]
// CHECK-DAG: %[[H:.*]] = memref.dim %arg2, %c1
// CHECK-DAG: %[[W:.*]] = memref.dim %arg2, %c2
// CHECK-DAG: %[[M:.*]] = arith.muli %{{.*}}, %c64
// CHECK-DAG: %[[MAP:.*]] = "gpu_tile.make_im2col_map"(%arg0) {box = array<i32: 64, 64>, dims = array<i32: 0, 3>, extents = ["y.shape[1]", "y.shape[2]"], lower = array<i32: -1, 3>, steps = array<i32: 2, 1>, swizzle = "128B"}
// CHECK: %[[Q:.*]] = arith.remsi %[[M]], %[[W]]
// CHECK: %[[LEFT:.*]] = arith.floordivsi %[[M]], %[[W]]
// CHECK: %[[AT_Q:.*]] = arith.addi %[[Q]], %c3
// CHECK: %[[P:.*]] = arith.remsi %[[LEFT]], %[[H]]
// CHECK: %[[IMAGE:.*]] = arith.floordivsi %[[LEFT]], %[[H]]
// CHECK: %[[TWICE:.*]] = arith.muli %[[P]], %c2
// CHECK: %[[AT_P:.*]] = arith.addi %[[TWICE]], %c-1
// CHECK: scf.for %[[R:[^ ]*]] = %c0
// CHECK: "gpu_tile.ring_announce"({{.*}}) {bytes = 16384 : i32}
// CHECK-DAG: %[[N:.*]] = arith.index_cast %[[IMAGE]] {tile.coordinate}
// CHECK-DAG: %[[Y:.*]] = arith.index_cast %[[AT_P]] {tile.coordinate}
// CHECK-DAG: %[[X:.*]] = arith.index_cast %[[AT_Q]] {tile.coordinate}
// CHECK-DAG: %[[MOVED:.*]] = arith.index_cast %[[R]] {tile.coordinate}
// CHECK: "gpu_tile.tma_load"(%[[MAP]], %{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %[[Y]], %[[X]], %{{[^,]*}}, %[[MOVED]], %{{[^,]*}}) {cache = "normal"}
// CHECK-NOT: tile.gather
// CHECK-NOT: gpu_tile.cp_async
func.func @steps_and_corners(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Nobody checks the box of a kernel of 64-bit indices.
// CHECK-LABEL: func.func @wide_indices
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @wide_indices(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 64 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Distances that are negative.
// CHECK-LABEL: func.func @backwards
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @backwards(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.subi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// A distance of which no launch knows the most.
// CHECK-LABEL: func.func @any_distance
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @any_distance(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>, %n: i32) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = arith.index_cast %n : i32 to index
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Steps of more than eight elements.
// CHECK-LABEL: func.func @far_steps
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @far_steps(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %nine = arith.constant dense<9> : !r
  %p2 = arith.muli %nine, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// A corner that 8 bits do not hold.
// CHECK-LABEL: func.func @far_corner
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @far_corner(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %far = arith.constant dense<128> : !r
  %left = arith.addi %far, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Columns that are no digits of the rows' numbers.
// CHECK-LABEL: func.func @other_digits
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @other_digits(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %q2 = arith.remsi %rows, %ws : !r
  %left = arith.addi %three, %q2 : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Rows that may begin in front of the first image.
// CHECK-LABEL: func.func @in_front
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @in_front(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>, %m: index) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %ok = arith.constant dense<true> : !ok
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}

// -----
!x = memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
!w = memref<?x?xf16, strided<[?, 1]>>
!t = tensor<64x64xf16>
!i = tensor<64x64xindex>
!ok = tensor<64x64xi1>
!r = tensor<64x1xindex>
!sum = tensor<64x64xf32>

// Masked rows.
// CHECK-LABEL: func.func @masked
// CHECK-NOT: make_im2col_map
// CHECK: gpu_tile.cp_async_gather
func.func @masked(
    %x: !x {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 1, 1, 8>, strides = array<i32: 8, 8, 8, 1>}},
    %w: !w {tile.name = "w", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}},
    %y: !x {tile.name = "y"}, %z: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  
  %zero = arith.constant dense<0.0> : !t
  %none = arith.constant dense<0.0> : !sum
  %pid = "tile.program_id"() {axis = 0 : i32} : () -> index
  %m = arith.muli %pid, %c64 : index
  %height = memref.dim %y, %c1 : !x
  %width = memref.dim %y, %c2 : !x
  %end = memref.dim %w, %c0 : !w
  %hs = tensor.splat %height : !r
  %ws = tensor.splat %width : !r
  %ms = tensor.splat %m : !r
  %lane = "tile.iota"() {axis = 0 : i32} : () -> tensor<64x1xi32>
  %lanes = arith.index_cast %lane : tensor<64x1xi32> to !r
  %pixel = arith.addi %ms, %lanes : !r
  %rows = arith.floordivsi %pixel, %ws : !r
  %image = arith.floordivsi %rows, %hs : !r
  %few = arith.cmpi slt, %pixel, %ws : !r
  %ok = "tile.broadcast"(%few) {dims = array<i32: 0, 1>} : (tensor<64x1xi1>) -> !ok
  %p = arith.remsi %rows, %hs : !r
  %q = arith.remsi %pixel, %ws : !r
  %one = arith.constant dense<1> : !r
  %two = arith.constant dense<2> : !r
  %three = arith.constant dense<3> : !r
  %p2 = arith.muli %two, %p : !r
  %top = arith.subi %p2, %one : !r
  %left = arith.addi %three, %q : !r
  %channel = "tile.iota"() {axis = 1 : i32} : () -> tensor<1x64xi32>
  %channels = arith.index_cast %channel : tensor<1x64xi32> to tensor<1x64xindex>
  %result = scf.for %r = %c0 to %end step %c1 iter_args(%acc = %none) -> (!sum) {
    %rs = tensor.splat %r : !r
    %down = arith.addi %top, %rs : !r
    %i0 = "tile.broadcast"(%image) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i1 = "tile.broadcast"(%down) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i2 = "tile.broadcast"(%left) {dims = array<i32: 0, 1>} : (!r) -> !i
    %i3 = "tile.broadcast"(%channels) {dims = array<i32: 0, 1>} : (tensor<1x64xindex>) -> !i
    %t = "tile.gather"(%x, %ok, %zero, %i0, %i1, %i2, %i3) {options = {}} : (!x, !ok, !t, !i, !i, !i, !i) -> !t
    %u = "tile.load"(%w, %r, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f16, options = {}} : (!w, index, index) -> !t
    %next = "tile.dot"(%t, %u, %acc) {options = {}} : (!t, !t, !sum) -> !sum
    scf.yield %next : !sum
  }
  "tile.store"(%result, %z, %c0, %c0) {dims = array<i32: 0, 1>, options = {}} : (!sum, memref<?x?xf32, strided<[?, 1]>>, index, index) -> ()
  return
}
