// Stores at multiples of what a loop counts.
// RUN: tilec opt %s --passes insert-barriers --target sm_80 --num-warps 4 | filecheck %s

#by1 = #gpu_tile.layout<"T(128):(1@0) V():()">
#by2 = #gpu_tile.layout<"T(64,2):(2@0,0) V(2):(1@0)">
!a = memref<?xf32, strided<[1]>>
!v = tensor<128xf32, #by1>
!w = tensor<128xf32, #by2>

// Tiles that a loop fills two at a time, 128 times what it counts: one is 128 behind the other.
// CHECK-LABEL: @multiples
// CHECK-NOT: gpu_tile.sync
// CHECK: return
func.func @multiples(%a: !a, %n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant dense<1.0> : !v
  %other = arith.constant dense<1.0> : !w
  scf.for %k = %c0 to %n step %c2 {
    %at = arith.muli %k, %c128 : index
    "tile.store"(%one, %a, %at) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
    %next = arith.addi %k, %c1 : index
    %behind = arith.muli %c128, %next : index
    "tile.store"(%other, %a, %behind) {dims = array<i32: 0>, options = {}} : (!w, !a, index) -> ()
  }
  return
}

// Of 64 times that they have 64 in common.
// CHECK-LABEL: @overlapping_multiples
// CHECK: "gpu_tile.sync"
// CHECK: return
func.func @overlapping_multiples(%a: !a, %k: index) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1.0> : !v
  %other = arith.constant dense<1.0> : !w
  %at = arith.muli %k, %c64 : index
  "tile.store"(%one, %a, %at) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  %next = arith.addi %k, %c1 : index
  %behind = arith.muli %next, %c64 : index
  "tile.store"(%other, %a, %behind) {dims = array<i32: 0>, options = {}} : (!w, !a, index) -> ()
  return
}

// Nor are 128 times one number and 64 times the same apart.
// CHECK-LABEL: @other_multiples
// CHECK: "gpu_tile.sync"
// CHECK: return
func.func @other_multiples(%a: !a, %k: index) attributes {tile.kernel} {
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant dense<1.0> : !v
  %other = arith.constant dense<1.0> : !w
  %at = arith.muli %k, %c128 : index
  "tile.store"(%one, %a, %at) {dims = array<i32: 0>, options = {}} : (!v, !a, index) -> ()
  %next = arith.addi %k, %c4 : index
  %behind = arith.muli %next, %c64 : index
  "tile.store"(%other, %a, %behind) {dims = array<i32: 0>, options = {}} : (!w, !a, index) -> ()
  return
}
