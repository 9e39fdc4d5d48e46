// Columns, the sync in front of the first use, the allocs behind it, the release at the end.
// RUN: tilec opt %s --passes allocate-tensor-memory --target sm_100a --num-warps 4 --split-input-file | filecheck %s

!small = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!ring = !gpu_tile.buffer<tensor<2x128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!slot = !gpu_tile.buffer<tensor<128x64xf32>, #gpu_tile.tmem<"(128,64):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>

// 128 columns and 16 behind them: a power of two that holds 144.
// CHECK-LABEL: @no_sync
// CHECK-NEXT: "gpu_tile.reserve_tensor_memory"() {columns = 256 : i32, options = {}}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-DAG: "gpu_tile.alloc"() {options = {offset = 128 : i32}} : () -> !gpu_tile.buffer<tensor<128x16xf32>
// CHECK-DAG: "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !gpu_tile.buffer<tensor<2x128x64xf32>
// CHECK: "gpu_tile.buffer_load"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.release_tensor_memory"() {columns = 256 : i32}
// CHECK-NEXT: return
func.func @no_sync(%i: i32) attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {}} : () -> !small
  %r = "gpu_tile.alloc"() {options = {}} : () -> !ring
  %s = "gpu_tile.slot"(%r, %i) : (!ring, i32) -> !slot
  %v = "gpu_tile.buffer_load"(%t) : (!small) -> !l
  return
}

// -----
!small = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>

// A sync that stands before the first use anyway serves; an alloc in a branch comes out of it.
// CHECK-LABEL: @own_sync
// CHECK-NEXT: "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {}}
// CHECK-NEXT: "gpu_tile.fence"
// CHECK-NEXT: "gpu_tile.sync"
// CHECK-NEXT: [[B:%.*]] = "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK-NEXT: scf.if
// CHECK-NEXT: "gpu_tile.buffer_load"([[B]])
// CHECK: "gpu_tile.sync"
// CHECK-NEXT: "gpu_tile.release_tensor_memory"
func.func @own_sync(%c: i1) attributes {tile.kernel} {
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  scf.if %c {
    %t = "gpu_tile.alloc"() {options = {}} : () -> !small
    %v = "gpu_tile.buffer_load"(%t) : (!small) -> !l
  }
  return
}

// -----
!small = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>

// Columns and their sync stand behind the rings, which that sync makes known, too.
// CHECK-LABEL: @behind_rings
// CHECK-NEXT: "gpu_tile.make_ring"() {{.*}}slots = 2 : i32
// CHECK-NEXT: "gpu_tile.make_ring"() {{.*}}slots = 3 : i32
// CHECK-NEXT: "gpu_tile.reserve_tensor_memory"() {columns = 32 : i32, options = {}}
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.alloc"() {options = {offset = 0 : i32}}
// CHECK-NEXT: "gpu_tile.buffer_load"
func.func @behind_rings() attributes {tile.kernel} {
  %two = "gpu_tile.make_ring"() {slots = 2 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %three = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 0 : i32, options = {}} : () -> !gpu_tile.ring
  %t = "gpu_tile.alloc"() {options = {}} : () -> !small
  %v = "gpu_tile.buffer_load"(%t) : (!small) -> !l
  return
}

// -----
!small = !gpu_tile.buffer<tensor<128x16xf32>, #gpu_tile.tmem<"(128,16):(1@lane,1@col)">>
!l = tensor<128x16xf32, #gpu_tile.layout<"T(128):(1@0) V(16):(1@1)">>

// One behind the first use does not, nor one of some warps.
// CHECK-LABEL: @late_sync
// CHECK-NEXT: "gpu_tile.reserve_tensor_memory"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 4 : i32}
// CHECK-NEXT: "gpu_tile.alloc"
// CHECK-NEXT: "gpu_tile.sync"() {barrier = 1 : i32
// CHECK-NEXT: "gpu_tile.buffer_load"
// CHECK-NEXT: "gpu_tile.sync"
func.func @late_sync() attributes {tile.kernel} {
  %t = "gpu_tile.alloc"() {options = {}} : () -> !small
  "gpu_tile.sync"() {barrier = 1 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  %v = "gpu_tile.buffer_load"(%t) : (!small) -> !l
  "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
  return
}
