// Products added to what a loop carries start from it.
// RUN: tilec opt %s --passes simplify --target sm_80 | filecheck %s

!a = tensor<16x16xf16>
!f = tensor<16x16xf32>
!b = tensor<16x16xi8>
!i = tensor<16x16xi32>

// CHECK-LABEL: @added
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: %[[ONE:.*]] = "tile.dot"(%arg0, %arg1, %[[ACC]])
// CHECK-NEXT: %[[TWO:.*]] = "tile.dot"(%arg1, %arg0, %[[ONE]])
// CHECK-NEXT: scf.yield %[[TWO]]
func.func @added(%x: !a, %y: !a, %n: index) -> !f attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !f
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!f) {
    %p = "tile.dot"(%x, %y, %zero) {options = {}} : (!a, !a, !f) -> !f
    %q = "tile.dot"(%y, %x, %zero) {options = {}} : (!a, !a, !f) -> !f
    %s = arith.addf %acc, %p fastmath<contract> : !f
    %t = arith.addf %q, %s fastmath<contract> : !f
    scf.yield %t : !f
  }
  return %sum : !f
}

// A multiple of what is carried, as attention has it.
// CHECK-LABEL: @scaled
// CHECK: %[[LESS:.*]] = arith.mulf
// CHECK: "tile.dot"(%arg0, %arg1, %[[LESS]])
// CHECK-NOT: arith.addf
// CHECK: return
func.func @scaled(%x: !a, %y: !a, %by: !f, %n: index) -> !f attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !f
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!f) {
    %p = "tile.dot"(%x, %y, %zero) {options = {}} : (!a, !a, !f) -> !f
    %less = arith.mulf %acc, %by : !f
    %s = arith.addf %p, %less fastmath<contract> : !f
    scf.yield %s : !f
  }
  return %sum : !f
}

// CHECK-LABEL: @integers
// CHECK: iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: "tile.dot"(%arg0, %arg0, %[[ACC]])
// CHECK-NOT: arith.addi
// CHECK: return
func.func @integers(%x: !b, %n: index) -> !i attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0> : !i
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!i) {
    %p = "tile.dot"(%x, %x, %zero) {options = {}} : (!b, !b, !i) -> !i
    %s = arith.addi %acc, %p : !i
    scf.yield %s : !i
  }
  return %sum : !i
}

// Not where the author's sums are exact, the product has another start or is used again, nor a
// bias, which no loop carries.
// CHECK-LABEL: @kept
// CHECK-COUNT-4: arith.addf
// CHECK: return
func.func @kept(%x: !a, %y: !a, %bias: !f, %n: index) -> (!f, !f, !f) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : !f
  %one = arith.constant dense<1.0> : !f
  %sums:3 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (!f, !f, !f) {
    %p = "tile.dot"(%x, %y, %zero) {options = {}} : (!a, !a, !f) -> !f
    %s = arith.addf %a, %p : !f
    %q = "tile.dot"(%y, %x, %one) {options = {}} : (!a, !a, !f) -> !f
    %t = arith.addf %b, %q fastmath<contract> : !f
    %r = "tile.dot"(%x, %x, %zero) {options = {}} : (!a, !a, !f) -> !f
    %u = arith.addf %c, %r fastmath<contract> : !f
    %v = arith.mulf %u, %r : !f
    scf.yield %s, %t, %v : !f, !f, !f
  }
  %d = "tile.dot"(%x, %x, %zero) {options = {}} : (!a, !a, !f) -> !f
  %e = arith.addf %d, %bias fastmath<contract> : !f
  return %sums#0, %sums#1, %e : !f, !f, !f
}
