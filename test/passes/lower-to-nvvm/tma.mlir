// Copies of boxes: one instruction a box, by one thread, the map a parameter behind all others.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!s = !gpu_tile.buffer<tensor<2x64x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>
!b = !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier

// Maps of one array, box and swizzle are one parameter; nothing copies it to the stack.
// CHECK-LABEL: llvm.func @load(
// CHECK-SAME: %[[N:[^:]*]]: i32, %[[MAP:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
func.func @load(%a: !m, %k: i32, %n: i32) attributes {tile.kernel} {
  %one = arith.constant 1 : i32
  %ring = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !s
  %full = "gpu_tile.barrier_init"() {slots = 2 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !bar
  %b = "gpu_tile.slot"(%ring, %one) : (!s, i32) -> !b
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  %same = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // The first thread, which fetches the map early; the innermost coordinate first.
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
  // CHECK: "@$1 prefetch.tensormap [$0];", "l,b,~{memory}" %[[MAP]], %[[FIRST]]
  // CHECK: llvm.inline_asm has_side_effects "@$5 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4}], [$2];", "r,l,r,r,r,b,~{memory}" %{{[^,]*}}, %[[MAP]], %{{[^,]*}}, %[[N]], %{{[^,]*}}, %[[FIRST]]
  // The second panel, 64 columns on.
  // CHECK: %[[N2:.*]] = arith.addi %[[N]], %c64
  // CHECK: "@$5 cp.async.bulk.tensor.2d{{.*}}", "r,l,r,r,r,b,~{memory}" %{{[^,]*}}, %[[MAP]], %{{[^,]*}}, %[[N2]], %{{[^,]*}}, %[[FIRST]]
  "gpu_tile.tma_load"(%map, %b, %full, %one, %k, %n) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32) -> ()
  // CHECK-COUNT-2: .L2::cache_hint [$0], [$1, {$3, $4}], [$2], $5;", "r,l,r,r,r,l,b,~{memory}"
  "gpu_tile.tma_load"(%same, %b, %full, %one, %k, %n) {cache = "evict_last"} : (!map, !b, !bar, i32, i32, i32) -> ()
  // CHECK-NOT: cp.async.bulk
  // CHECK: llvm.return
  return
}

// -----
!m = memref<?x?x?xf16, strided<[?, ?, 1]>>
!b = !gpu_tile.buffer<tensor<32x16xf16>, #gpu_tile.shared<"(32,16):(16,1)">>
!map = !gpu_tile.tensor_map

// A dimension that no tile dimension runs along comes last, with its coordinate.
// CHECK-LABEL: llvm.func @store(
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[MAP:[^:]*]]: !llvm.ptr {
func.func @store(%a: !m, %x: i32, %y: i32, %z: i32) attributes {tile.kernel} {
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 32, 16>, dims = array<i32: 0, 2>, swizzle = "none"} : (!m) -> !map
  // CHECK: "@$5 cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$1, {$2, $3, $4}], [$0];", "r,l,r,r,r,b,~{memory}" %{{[^,]*}}, %[[MAP]], %[[Z]], %[[X]], %[[Y]], %
  "gpu_tile.tma_store"(%b, %map, %x, %y, %z) {combine = "none"} : (!b, !map, i32, i32, i32) -> ()
  // CHECK: "@$5 cp.reduce.async.bulk.tensor.3d.global.shared::cta.max.bulk_group [$1, {$2, $3, $4}], [$0];"
  "gpu_tile.tma_store"(%b, %map, %x, %y, %z) {combine = "max"} : (!b, !map, i32, i32, i32) -> ()
  // CHECK: "@$0 cp.async.bulk.commit_group;", "b,~{memory}"
  "gpu_tile.tma_commit"() : () -> ()
  // Every thread waits, also one that issued none: which ones did is no matter of this op.
  // CHECK: "cp.async.bulk.wait_group.read 1;", "~{memory}"
  "gpu_tile.tma_wait"() {pending = 1 : i32, read = true} : () -> ()
  // CHECK: "cp.async.bulk.wait_group 0;", "~{memory}"
  "gpu_tile.tma_wait"() {pending = 0 : i32, read = false} : () -> ()
  return
}

// -----
!m = memref<?x?xi8, strided<[1, ?]>>
!b = !gpu_tile.buffer<tensor<32x8xi8>, #gpu_tile.shared<"S<2,4,3> o (32,8):(1,64)">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier

// Rows along the first dimension; narrower than the swizzle, they lie as far apart as it is wide.
// A role that only copies is run by its first warp, which elects a thread for each instruction.
// CHECK-LABEL: llvm.func @columns(
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %{{[^:]*}}: !llvm.ptr {
func.func @columns(%a: !m, %x: i32, %y: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 512 : i32}} : () -> !bar
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 32, 8>, dims = array<i32: 0, 1>, swizzle = "64B"} : (!m) -> !map
  "gpu_tile.role"() ({
    // CHECK: scf.if
    // CHECK: %[[ELECTED:.*]] = nvvm.elect.sync
    // CHECK-NOT: scf.if
    // CHECK: "@$5 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4}], [$2];", "r,l,r,r,r,b,~{memory}" %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[X]], %[[Y]], %[[ELECTED]] :
    "gpu_tile.tma_load"(%map, %b, %full, %zero, %x, %y) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32) -> ()
    "gpu.yield"() : () -> ()
  }) {name = "load", first_warp = 0 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!x = memref<?x?x?x?xbf16, strided<[?, ?, ?, 1]>>
!b = !gpu_tile.buffer<tensor<128x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,(64,2)):(64,(1,8192))">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier

// In im2col mode: coordinates from the channel on, and offsets of 16 bits, the one along rows first;
// the second panel is 64 channels on.
// CHECK-LABEL: llvm.func @images(
// CHECK-SAME: %[[IMAGE:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[X:[^:]*]]: i32, %[[C:[^:]*]]: i32, %[[R:[^:]*]]: i32, %[[S:[^:]*]]: i32, %[[MAP:[^:]*]]: !llvm.ptr {
// CHECK: %[[S16:.*]] = arith.trunci %[[S]] : i32 to i16
// CHECK: %[[R16:.*]] = arith.trunci %[[R]] : i32 to i16
// CHECK: "@$9 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2], {$7, $8};", "r,l,r,r,r,r,r,h,h,b,~{memory}" %{{[^,]*}}, %[[MAP]], %{{[^,]*}}, %[[C]], %[[X]], %[[Y]], %[[IMAGE]], %[[S16]], %[[R16]], %
// CHECK: %[[C2:.*]] = arith.addi %[[C]], %c64
// CHECK: .im2col.{{.*}} %[[C2]], %[[X]], %[[Y]], %[[IMAGE]], %[[S16]], %[[R16]], %
// CHECK: .im2col.mbarrier::complete_tx::bytes.L2::cache_hint [$0], [$1, {$3, $4, $5, $6}], [$2], {$7, $8}, $9;", "r,l,r,r,r,r,r,h,h,l,b,~{memory}"
func.func @images(%x: !x, %image: i32, %p: i32, %q: i32, %c: i32, %r: i32, %s: i32) attributes {tile.kernel} {
  %zero = arith.constant 0 : i32
  %b = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} : () -> !b
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 0 : i32}} : () -> !bar
  %map = "gpu_tile.make_im2col_map"(%x) {box = array<i32: 128, 64>, dims = array<i32: 0, 3>, extents = ["5", "7"], lower = array<i32: -1, -1>, steps = array<i32: 1, 1>, swizzle = "128B"} : (!x) -> !map
  "gpu_tile.tma_load"(%map, %b, %full, %zero, %image, %p, %q, %c, %r, %s) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32, i32, i32, i32, i32) -> ()
  "gpu_tile.tma_load"(%map, %b, %full, %zero, %image, %p, %q, %c, %r, %s) {cache = "evict_last"} : (!map, !b, !bar, i32, i32, i32, i32, i32, i32, i32) -> ()
  return
}
