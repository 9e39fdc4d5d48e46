// A product is as many instructions as its tiles are, by one thread; descriptors say where operands lie.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 4 --split-input-file | filecheck %s

!a = !gpu_tile.buffer<tensor<128x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (128,64):(64,1)">>
!b = !gpu_tile.buffer<tensor<64x128xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,(64,2)):(64,(1,4096))">>
!acc = !gpu_tile.buffer<tensor<128x128xf32>, #gpu_tile.tmem<"(128,128):(1@lane,1@col)">>
!bar = !gpu_tile.barrier

// The words of Triton 3.6: 0x4000404000000000 (and the unused leading offset 1) for A along k,
// 0x4000404002000000 for B along n, 0x8210490 for the types, the shape and B's major.
// CHECK-LABEL: llvm.func @k_steps
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 4611756662049472512 : i64
// CHECK-DAG: %[[WORD:.*]] = arith.constant 136381584 : i32
// CHECK-DAG: %[[TRUE:.*]] = arith.constant true
func.func @k_steps(%use: i1) attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32, options = {offset = 32768 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %a = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !b
  %acc = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !acc
  // The accumulator is overwritten by the first step alone.
  // CHECK: %[[BLOW:.*]] = arith.addi %{{.*}}, %c33554432_i32
  // CHECK: %[[ALOW:.*]] = arith.addi %{{.*}}, %c65536_i32
  // CHECK: %[[A:.*]] = arith.ori %{{.*}}, %[[HIGH]] : i64
  // CHECK: %[[B:.*]] = arith.ori %{{.*}}, %[[HIGH]] : i64
  // CHECK: "@$5 tcgen05.mma.cta_group::1.kind::f16 [$0], $1, $2, $3, $4;", "r,l,l,r,b,b,~{memory}" %{{[^,]*}}, %[[A]], %[[B]], %[[WORD]], %{{[0-9]+}}, %
  // 32 bytes along a row of A, 16 rows of B further.
  // CHECK: arith.addi %[[ALOW]], %c2
  // CHECK: arith.addi %[[BLOW]], %c128
  // CHECK-COUNT-3: "@$5 tcgen05.mma.cta_group::1.kind::f16 [$0], $1, $2, $3, $4;", "r,l,l,r,b,b,~{memory}" %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[WORD]], %[[TRUE]], %
  // CHECK-NOT: tcgen05.mma
  "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n128k16.f32.bf16.bf16"} : (!a, !b, !acc, i1) -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<256x16xf16>, #gpu_tile.tmem<"((128,2),16):((1@lane,8@col),16@bit)">>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<256x64xf32>, #gpu_tile.tmem<"((128,2),64):((1@lane,64@col),1@col)">>
!bar = !gpu_tile.barrier

// Four blocks of 128 x 32, the lhs in tensor memory: columns 8 and 32 on. In a role that only
// multiplies the branch says who issues.
// CHECK-LABEL: llvm.func @blocks
func.func @blocks(%use: i1, %slot: i32) attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 256 : i32, options = {offset = 32768 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %a = "gpu_tile.alloc"() {options = {offset = 128 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !b
  // CHECK: %[[BASE:.*]] = llvm.load
  // CHECK: %[[LHS:.*]] = arith.addi %[[BASE]], %c128
  // CHECK: %[[ACC:.*]] = arith.addi %[[BASE]], %c32
  %acc = "gpu_tile.alloc"() {options = {offset = 32 : i32}} : () -> !acc
  %done = "gpu_tile.barrier_init"() {slots = 2 : i32, count = 1 : i32, options = {offset = 32776 : i32}} : () -> !bar
  // CHECK: scf.if
  "gpu_tile.role"() ({
    // CHECK: "tcgen05.mma.cta_group::1.kind::f16 [$0], [$1], $2, $3, $4;", "r,r,l,r,b,~{memory}" %[[ACC]], %[[LHS]],
    // CHECK: %[[RIGHT:.*]] = arith.addi %[[ACC]], %c32
    // CHECK: "tcgen05.mma{{.*}}" %[[RIGHT]], %[[LHS]],
    // CHECK: %[[BELOW:.*]] = arith.addi %[[ACC]], %c64
    // CHECK: %[[LOWER:.*]] = arith.addi %[[LHS]], %c8
    // CHECK: "tcgen05.mma{{.*}}" %[[BELOW]], %[[LOWER]],
    // CHECK: %[[LAST:.*]] = arith.addi %[[ACC]], %c96
    // CHECK: "tcgen05.mma{{.*}}" %[[LAST]],
    "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n32k16.f32.f16.f16"} : (!a, !b, !acc, i1) -> ()
    // CHECK: "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];", "r,~{memory}"
    "gpu_tile.tcgen05_commit"(%done, %slot) : (!bar, i32) -> ()
    "gpu.yield"() : () -> ()
  }) {name = "multiply", first_warp = 0 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}

// -----
!a = !gpu_tile.buffer<tensor<128x16xf16>, #gpu_tile.tmem<"(128,16):(1@lane,16@bit)">>
!b = !gpu_tile.buffer<tensor<16x64xf16>, #gpu_tile.shared<"S<3,4,3> o (16,64):(64,1)">>
!acc = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>

// A role of one warp whose lanes all run it (fences are for all of them) issues what it elects.
// CHECK-LABEL: llvm.func @elected
func.func @elected(%use: i1) attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 128 : i32, options = {offset = 32768 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %a = "gpu_tile.alloc"() {options = {offset = 64 : i32}} : () -> !a
  %b = "gpu_tile.alloc"() {options = {offset = 16384 : i32}} : () -> !b
  %acc = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !acc
  "gpu_tile.role"() ({
    // CHECK: scf.if
    // CHECK: %[[ELECTED:.*]] = nvvm.elect.sync -> i1
    // CHECK-NOT: scf.if
    // CHECK: tcgen05.fence::after_thread_sync
    // CHECK: "@$5 tcgen05.mma{{.*}}, %[[ELECTED]]
    "gpu_tile.fence"() {kind = "tcgen05_after"} : () -> ()
    "gpu_tile.tcgen05_mma"(%a, %b, %acc, %use) {instruction = "tcgen05.m128n64k16.f32.f16.f16"} : (!a, !b, !acc, i1) -> ()
    "gpu.yield"() : () -> ()
  }) {name = "multiply", first_warp = 1 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}
