// A row that rows of blocks are added to in a loop: threads meet behind it.
// RUN: tilec opt %s --passes carry-partials --target sm_90a | filecheck %s

!block = tensor<16x128xf32, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,2):(1@1,8@0)">>
!half = tensor<16x128xf16, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8,2):(1@1,8@0)">>
!row = tensor<128xf32, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
!half_row = tensor<128xf16, #gpu_tile.layout<"T(16,8):(8@0,0) V(8):(1@0)">>
!even = tensor<128xf32, #gpu_tile.layout<"T(128):(1@0) V():()">>

// acc = acc * a + sum(x, axis 0), in another layout than the sum has.
// CHECK-LABEL: @scaled
func.func @scaled(%x: !block, %n: index, %factor: f32) -> !even attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !even
  // CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) -> (tensor<128xf32, {{.*}}>, tensor<8x128xf32, #gpu_tile.layout<"T(16,8):(8@1,1@0) V(8):(1@1)">>)
  // CHECK: %[[LESS:.*]] = arith.mulf %[[ACC]], %{{.*}} : tensor<8x128xf32
  // CHECK: %[[OWN:.*]] = "gpu_tile.thread_reduce"
  // CHECK: %[[NEXT:.*]] = arith.addf %[[LESS]], %[[OWN]]
  // CHECK: scf.yield %[[OLD]], %[[NEXT]]
  // CHECK: %[[ALL:.*]] = "tile.reduce"(%[[R]]#1)
  // CHECK: %[[EVEN:.*]] = "gpu_tile.convert_layout"(%[[ALL]])
  // CHECK: return %[[EVEN]]
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!even) {
    %factors = tensor.splat %factor : !even
    %less = arith.mulf %acc, %factors : !even
    %s = "tile.reduce"(%x) ({
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      gpu.yield %t : f32
    }) {axis = 0 : i32} : (!block) -> !row
    %even = "gpu_tile.convert_layout"(%s) : (!row) -> !even
    %next = arith.addf %less, %even : !even
    scf.yield %next : !even
  }
  return %r : !even
}

// Sums of 16 bits that are widened: a thread adds up its own in 16 bits, the rest is in 32.
// CHECK-LABEL: @widened
func.func @widened(%x: !half, %n: index, %factor: f16) -> !row attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !row
  // CHECK: scf.for
  // CHECK: %[[OWN:.*]] = "gpu_tile.thread_reduce"
  // CHECK: arith.addf {{.*}} : f16
  // CHECK: -> tensor<8x128xf16
  // CHECK: %[[SPLAT:.*]] = tensor.splat %arg2 : tensor<8x128xf16
  // CHECK: %[[MORE:.*]] = arith.mulf %[[OWN]], %[[SPLAT]] : tensor<8x128xf16
  // CHECK: %[[WIDE:.*]] = arith.extf %[[MORE]] : tensor<8x128xf16, {{.*}}> to tensor<8x128xf32
  // CHECK: arith.addf %{{.*}}, %[[WIDE]] : tensor<8x128xf32
  // CHECK: "tile.reduce"
  // CHECK: arith.addf {{.*}} : f32
  // CHECK: -> tensor<128xf32
  // CHECK-NOT: convert_layout
  // CHECK: return
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!row) {
    %s = "tile.reduce"(%x) ({
    ^bb0(%p: f16, %q: f16):
      %t = arith.addf %p, %q : f16
      gpu.yield %t : f16
    }) {axis = 0 : i32} : (!half) -> !half_row
    %factors = tensor.splat %factor : !half_row
    %more = arith.mulf %s, %factors : !half_row
    %wide = arith.extf %more : !half_row to !row
    %next = arith.addf %acc, %wide : !row
    scf.yield %next : !row
  }
  return %r : !row
}
