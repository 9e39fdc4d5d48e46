// The error points at the loop and shows it.
// RUN: not tilec opt %s --passes pipeline-loops --target sm_80 2>&1 | filecheck %s

// CHECK: caret.mlir:[[# @LINE + 6]]:3: error: stages=4 was asked for, but the loop holds no asynchronous copy of its own
// CHECK-NEXT: |   scf.for %k = %c0 to %n step %c64
// CHECK-NEXT: |   ^
func.func @k(%n: index) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
  } {tile.stages = 4 : i32}
  return
}
