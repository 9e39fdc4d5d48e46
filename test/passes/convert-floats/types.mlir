// Every value of an 8-bit float type becomes i8: arguments, constants, loops, selects, vectors.
// RUN: tilec opt %s --passes convert-floats --target sm_90a | filecheck %s
// CHECK-NOT: f8E

// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[X:.*]]: i8, %[[C:.*]]: i1) -> i8
func.func @loop(%x: f8E4M3FN, %c: i1) -> f8E4M3FN {
  // 1.5 is 0x3c.
  // CHECK: %[[K:.*]] = arith.constant 60 : i8
  %k = arith.constant 1.5 : f8E4M3FN
  // CHECK: arith.constant dense<-72> : vector<2xi8>
  %v = arith.constant dense<-1.0> : vector<2xf8E4M3FN>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %one step %one iter_args(%a = %x) -> (f8E4M3FN) : i32 {
    // CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]]) -> (i8)
    // CHECK: %[[S:.*]] = arith.select %[[C]], %[[A]], %[[K]] : i8
    // CHECK: scf.yield %[[S]] : i8
    %s = arith.select %c, %a, %k : f8E4M3FN
    scf.yield %s : f8E4M3FN
  }
  // CHECK: return {{.*}} : i8
  return %r : f8E4M3FN
}

// CHECK-LABEL: func.func @casts_vanish
// CHECK-SAME: (%[[X:.*]]: i8)
func.func @casts_vanish(%x: i8) -> i8 {
  // CHECK-NEXT: return %[[X]]
  %0 = arith.bitcast %x : i8 to f8E5M2
  %1 = arith.bitcast %0 : f8E5M2 to i8
  return %1 : i8
}
