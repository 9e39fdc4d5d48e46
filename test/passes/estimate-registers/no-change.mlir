// The pass speaks in the report only; the program stays as it is.
// RUN: tilec opt %s --passes estimate-registers --target sm_90a --num-warps 4 | filecheck %s

// CHECK-LABEL: @large
// CHECK-NEXT: arith.negf
// CHECK-NEXT: return
!x = tensor<256x256xf32, #gpu_tile.layout<"T(128):(1@0) V(256,2):(1@1,128@0)">>
func.func @large(%x: !x) -> !x attributes {tile.kernel} {
  %y = arith.negf %x : !x
  return %y : !x
}
