// Tensor memory: taken and returned by the first warp; loads and stores by each warp in its lanes.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_100a --num-warps 4 --split-input-file | filecheck %s

!t = !gpu_tile.buffer<tensor<128x24xf32>, #gpu_tile.tmem<"(128,24):(1@lane,1@col)">>
!l = tensor<128x24xf32, #gpu_tile.layout<"T(128):(1@0) V(24):(1@1)">>

// CHECK-LABEL: llvm.func @whole_lanes
func.func @whole_lanes() attributes {tile.kernel} {
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[WARP]], %c0
  // CHECK: "@$1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], 32;", "r,b,~{memory}" %{{.*}}, %[[FIRST]]
  // CHECK: "@$0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "b,~{memory}" %
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 64 : i32}} : () -> ()
  // CHECK: nvvm.barrier
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  // CHECK: %[[BASE:.*]] = llvm.load
  // CHECK: %[[T:.*]] = arith.addi %[[BASE]], %c8
  %t = "gpu_tile.alloc"() {options = {offset = 8 : i32}} : () -> !t
  // A warp's lanes are 32 further, 32 << 16; 24 columns are 16 and 8, and one wait.
  // CHECK: %[[STEP:.*]] = arith.muli %[[WARP]], %c2097152
  // CHECK: %[[START:.*]] = arith.addi %[[T]], %[[STEP]]
  // CHECK: "tcgen05.ld.sync.aligned.32x32b.x16.b32 {$0, {{.*}}, $15}, [$16];"{{.*}} %[[START]]
  // CHECK: %[[NEXT:.*]] = arith.addi %[[START]], %c16
  // CHECK: "tcgen05.ld.sync.aligned.32x32b.x8.b32 {$0, {{.*}}, $7}, [$8];"{{.*}} %[[NEXT]]
  // CHECK-NEXT: llvm.extractvalue
  // CHECK: "tcgen05.wait::ld.sync.aligned;", "=r,{{.*}},0,1,
  // CHECK-NOT: tcgen05.wait
  %v = "gpu_tile.buffer_load"(%t) : (!t) -> !l
  // CHECK: "tcgen05.st.sync.aligned.32x32b.x16.b32 [$0], {$1, {{.*}}, $16};"
  // CHECK: "tcgen05.st.sync.aligned.32x32b.x8.b32
  // CHECK: "tcgen05.wait::st.sync.aligned;", "~{memory}"
  "gpu_tile.buffer_store"(%v, %t) : (!l, !t) -> ()
  // CHECK: "tcgen05.fence::before_thread_sync;"
  "gpu_tile.fence"() {kind = "tcgen05_before"} : () -> ()
  // CHECK: "tcgen05.fence::after_thread_sync;"
  "gpu_tile.fence"() {kind = "tcgen05_after"} : () -> ()
  // CHECK: "@$1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, 32;", "r,b,~{memory}" %[[BASE]], %
  "gpu_tile.release_tensor_memory"() {columns = 32 : i32} : () -> ()
  return
}

// -----
!t = !gpu_tile.buffer<tensor<64x32xf16>, #gpu_tile.tmem<"((16,4),32):((1@lane,32@lane),16@bit)">>
!l = tensor<64x32xf16, #gpu_tile.layout<"T(16,2,4):(1@0,16@1,16@0) V(16):(1@1)">>

// 16 of 32 lanes: the upper half of a warp has the right half of the columns, two halves a column.
// CHECK-LABEL: llvm.func @half_the_lanes
func.func @half_the_lanes() attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {offset = 64 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  // CHECK: "tcgen05.ld.sync.aligned.16x32bx2.x8.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, [$8], 8;"
  %v = "gpu_tile.buffer_load"(%t) : (!t) -> !l
  // CHECK: "tcgen05.st.sync.aligned.16x32bx2.x8.b32 [$0], 8, {$1, $2, $3, $4, $5, $6, $7, $8};"
  "gpu_tile.buffer_store"(%v, %t) : (!l, !t) -> ()
  return
}

// -----
!t = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<128x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,32@0) V(2,2,8,2):(1@1,8@0,8@1,16@0)">>

// The fragments of mma: 16 lanes at a time.
// CHECK-LABEL: llvm.func @fragments
func.func @fragments() attributes {tile.kernel} {
  "gpu_tile.reserve_tensor_memory"() {columns = 64 : i32, options = {offset = 64 : i32}} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %t = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !t
  // CHECK: %[[START:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
  // CHECK: "tcgen05.ld.sync.aligned.16x256b.x8.b32 {{.*}} %[[START]] :
  // CHECK: %[[NEXT:.*]] = arith.addi %[[START]], %c1048576
  // CHECK: "tcgen05.ld.sync.aligned.16x256b.x8.b32 {{.*}} %[[NEXT]] :
  %v = "gpu_tile.buffer_load"(%t) : (!t) -> !l
  return
}
