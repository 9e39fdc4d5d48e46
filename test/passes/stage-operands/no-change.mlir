// Programs without a dot stay as they are.
// RUN: tilec opt %s --passes stage-operands --target sm_80 --num-warps 4 | filecheck %s

!t = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>
// CHECK-LABEL: @elementwise
// CHECK-NEXT: arith.addf
// CHECK-NEXT: return
func.func @elementwise(%x: !t) attributes {tile.kernel} {
  %y = arith.addf %x, %x : !t
  return
}
