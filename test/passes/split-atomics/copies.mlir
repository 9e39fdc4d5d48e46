// Old values go to the copies of their elements through a buffer, where anybody asks for them.
// RUN: tilec opt %s --passes split-atomics --target sm_80 --num-warps 2 | filecheck %s

!m = memref<?xi32, strided<[1]>>
!copies = tensor<32xi32, #gpu_tile.layout<"T(32,2):(1@0,0) V():()">>
!few = tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!all = tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>

// CHECK-LABEL: @used
func.func @used(%a: !m, %v: !copies, %ok: tensor<32xi1, #gpu_tile.layout<"T(32,2):(1@0,0) V():()">>) attributes {tile.kernel} {
  // CHECK: %[[OLD:.*]] = "tile.atomic_rmw"
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[OLD]], %[[B]])
  // CHECK: %[[ALL:.*]] = "gpu_tile.buffer_load"(%[[B]])
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (!copies, !m, tensor<32xi1, #gpu_tile.layout<"T(32,2):(1@0,0) V():()">>, !copies) -> !copies
  // CHECK: arith.addi %[[ALL]], %[[ALL]]
  %twice = arith.addi %old, %old : !copies
  return
}

// CHECK-LABEL: @fewer_threads_than_the_cta
func.func @fewer_threads_than_the_cta(%a: !m, %v: !few, %ok: tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>) attributes {tile.kernel} {
  // CHECK: "tile.atomic_cas"
  // CHECK: gpu_tile.buffer_load
  %old = "tile.atomic_cas"(%v, %v, %a, %ok, %v) {order = "relaxed", scope = "gpu"} : (!few, !few, !m, tensor<32xi1, #gpu_tile.layout<"T(32):(1@0) V():()">>, !few) -> !few
  %twice = arith.addi %old, %old : !few
  return
}

// CHECK-LABEL: @unused_or_without_copies
// CHECK-NOT: gpu_tile.alloc
func.func @unused_or_without_copies(%a: !m, %v: !copies, %ok: tensor<32xi1, #gpu_tile.layout<"T(32,2):(1@0,0) V():()">>, %w: !all, %fine: tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>) attributes {tile.kernel} {
  %old = "tile.atomic_rmw"(%v, %a, %ok, %v) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (!copies, !m, tensor<32xi1, #gpu_tile.layout<"T(32,2):(1@0,0) V():()">>, !copies) -> !copies
  %sole = "tile.atomic_rmw"(%w, %a, %fine, %w) {kind = "addi", options = {}, order = "relaxed", scope = "gpu"} : (!all, !m, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !all) -> !all
  %twice = arith.addi %sole, %sole : !all
  return
}
