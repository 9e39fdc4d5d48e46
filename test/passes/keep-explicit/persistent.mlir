// A kernel that asks which CTA it is is persistent, unless it is said to ask for programs.
// RUN: tilec opt %s --passes keep-explicit --target sm_100a --num-warps 4 | filecheck %s

// CHECK-LABEL: @asks
// CHECK-SAME: tile.persistent = true
func.func @asks(%x: memref<?xi32>) attributes {tile.kernel, tile.explicit} {
  %program = "gpu_tile.cta_id"() : () -> i32
  return
}

// CHECK-LABEL: @requests
// CHECK-SAME: tile.persistent = "dynamic"
func.func @requests(%x: memref<?xi32>) attributes {tile.kernel, tile.explicit, tile.persistent = "dynamic"} {
  %program = "gpu_tile.cta_id"() : () -> i32
  return
}

// CHECK-LABEL: @does_not_ask
// CHECK-NOT: tile.persistent
func.func @does_not_ask(%x: memref<?xi32>) attributes {tile.kernel, tile.explicit} {
  return
}
