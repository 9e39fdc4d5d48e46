// Scalars have no layout.
// RUN: tilec opt %s --passes infer-layouts --target sm_80 --num-warps 4 | filecheck %s

// CHECK-LABEL: @scalars
// CHECK-NEXT: arith.addi
// CHECK-NEXT: return
// CHECK-NOT: gpu_tile.layout
func.func @scalars(%a: i32, %b: i32) -> i32 attributes {tile.kernel} {
  %c = arith.addi %a, %b : i32
  return %c : i32
}
