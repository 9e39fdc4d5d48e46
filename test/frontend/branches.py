# Branches: results, merged constants, early return, conditional expressions.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# x differs and is read later: a result. y is only read inside. z is the same constant on both ways.
# CHECK-LABEL: func.func @merges(
# CHECK:       %[[X:.*]] = scf.if %{{.*}} -> (f32) {
# CHECK:         scf.yield %cst{{.*}} : f32
# CHECK:       } else {
# CHECK:         %[[Y:.*]] = arith.mulf %arg2, %{{.*}}
# CHECK:         scf.yield %[[Y]] : f32
# CHECK:       }
# CHECK:       %[[SUM:.*]] = arith.addf %[[X]], %cst{{.*}} : f32
@tilec.kernel
def merges(v: tl.array, n: tl.i32, f: tl.f32):
    if n > 0:
        x = 1.0
        z = 7.0
    else:
        y = f * 2
        x = y
        z = 7.0
    tl.store(v, 0, x + z)


print(merges.source_module(["v:f32[?]"]))


# What follows an early return moves into the other branch.
# CHECK-LABEL: func.func @returns(
# CHECK:       scf.if %{{.*}} {
# CHECK-NEXT:  } else {
# CHECK:         "tile.store"
# CHECK-NEXT:  }
# CHECK-NEXT:  return
@tilec.kernel
def returns(v: tl.array, n: tl.i32):
    if n < 0:
        return
    tl.store(v, n, 1.0)


print(returns.source_module(["v:f32[?]"]))


# CHECK-LABEL: func.func @expression(
# CHECK:       scf.if %{{.*}} -> (f32) {
# CHECK:         math.exp
# CHECK:       } else {
# CHECK-NOT:     math.exp
@tilec.kernel
def expression(v: tl.array, f: tl.f32):
    tl.store(v, 0, tl.exp(f) if f > 0 else f)


print(expression.source_module(["v:f32[?]"]))


def pick(n):
    if n > 3:
        return 10
    return n


# CHECK-LABEL: func.func @calls(
# CHECK:       %[[R:.*]] = scf.if %{{.*}} -> (i32) {
# CHECK:         scf.yield %c10_i32
# CHECK:       } else {
# CHECK:         scf.yield %arg1
@tilec.kernel
def calls(q: tl.array, n: tl.i32):
    tl.store(q, 0, pick(n))


print(calls.source_module(["q:i32[?]"]))
