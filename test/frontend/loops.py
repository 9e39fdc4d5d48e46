# ruff: noqa: E501
# Loops: carried names and their dtypes, demands, counting down, break, while.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# Only what is read later is carried: acc and total, not t. Numbers adapt: total becomes index.
# CHECK-LABEL: func.func @carried(
# CHECK:       %[[R:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[T:.*]] = %c0) -> (tensor<16xf32>, index) {
# CHECK:         %[[NEW:.*]] = arith.addf %[[ACC]], %{{.*}} fastmath<contract> : tensor<16xf32>
# CHECK:         %[[TN:.*]] = arith.addi %[[T]], %[[I]] : index
# CHECK:         scf.yield %[[NEW]], %[[TN]] : tensor<16xf32>, index
# CHECK-NEXT:  } {tile.stages = 3 : i32, tile.warp_specialize = true}
# CHECK:       "tile.store"(%[[R]]#0, %{{.*}}, %[[R]]#1)
@tilec.kernel
def carried(v: tl.array):
    acc = tl.zeros(16, tl.f32)
    total = 0
    t = tl.load(v, 0, 8)
    for i in tl.range(0, v.shape[0], 16, stages=3, warp_specialize=True):
        t = tl.load(v, i, 16)
        acc += t
        total += i
    tl.store(v, total, acc)


print(carried.source_module(["v:f32[?]"]))


# CHECK-LABEL: func.func @down(
# CHECK:       %[[D:.*]] = arith.subi %[[N:.*]], %[[END:.*]] : index
# CHECK:       %[[TRIPS:.*]] = arith.ceildivsi %[[D]], %c2 : index
# CHECK:       scf.for %[[K:.*]] = %c0{{.*}} to %[[TRIPS]] step %c1
# CHECK:         %[[S:.*]] = arith.muli %[[K]], %c-2 : index
# CHECK:         arith.addi %[[N]], %[[S]] : index
@tilec.kernel
def down(v: tl.array, n: tl.i32):
    for i in range(n, -1, -2):
        tl.store(v, i, 1.0)


print(down.source_module(["v:f32[?]", "n:i32"]))


# A step that may be 0 or less is looked at where the loop begins; one that counts programs is not.
# CHECK-LABEL: func.func @stepped(
# CHECK:       %[[UP:.*]] = arith.cmpi sgt, %{{.*}}, %c0_i32 : i32
# CHECK:       "tile.assert"(%[[UP]]) {message = "the step of this range is 0 or negative; to count down, give a constant step"}
# CHECK:       scf.for
# CHECK-NOT:   tile.assert
# CHECK:       return
@tilec.kernel
def stepped(v: tl.array, n: tl.i32):
    for i in range(0, v.shape[0], n):
        tl.store(v, i, 1.0)
    for i in range(tl.program_id(0), v.shape[0], tl.num_programs(0) * 4):
        tl.store(v, i, 1.0)


print(stepped.source_module(["v:f32[?]", "n:i32"]))


# CHECK-LABEL: func.func @breaks(
# CHECK:       scf.while (%[[I:.*]] = %c0{{.*}}, %[[BROKEN:.*]] = %false
# CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[I]], %{{.*}} : index
# CHECK:         %[[GOING:.*]] = arith.xori %[[BROKEN]], %true : i1
# CHECK:         %[[BOTH:.*]] = arith.andi %[[IN]], %[[GOING]] : i1
# CHECK:         scf.condition(%[[BOTH]])
# CHECK:         %[[OUT:.*]]:2 = scf.if %{{.*}} -> (i32, i1) {
# CHECK:           scf.yield %{{.*}}, %true
# CHECK:         } else {
# CHECK:           scf.yield %{{.*}}, %false
# CHECK:         scf.yield %{{.*}}, %[[OUT]]#1, %[[OUT]]#0
@tilec.kernel
def breaks(v: tl.array, q: tl.array):
    count = 0
    for i in range(v.shape[0]):
        if tl.load(v, i, ()) > 1:
            break
        count += 1
    tl.store(q, 0, count)


print(breaks.source_module(["v:f32[?]", "q:i32[?]"]))


# CHECK-LABEL: func.func @whiles(
# CHECK:       scf.while (%[[N:.*]] = %arg1) : (i32) -> i32 {
# CHECK:         %[[C:.*]] = arith.cmpi sgt, %[[N]], %{{.*}} : i32
# CHECK:         scf.condition(%[[C]]) %[[N]] : i32
# CHECK:       ^bb0(%[[M:.*]]: i32):
# CHECK:         %[[H:.*]] = arith.shrsi %[[M]], %{{.*}} : i32
# CHECK:         scf.yield %[[H]] : i32
@tilec.kernel
def whiles(q: tl.array, n: tl.i32):
    while n > 1:
        n = n // 2
    tl.store(q, 0, n)


print(whiles.source_module(["q:i32[?]", "n:i32"]))


# A compile-time loop leaves no loop, a compile-time condition no branch.
# CHECK-LABEL: func.func @unrolled(
# CHECK-NOT:   scf.
# CHECK-COUNT-3: "tile.store"
# CHECK-NOT:   "tile.store"
# CHECK:       return
@tilec.kernel
def unrolled(v: tl.array, N: tl.const = 6):
    for i in tl.static_range(N):
        if i % 2 == 0:
            tl.store(v, i, float(i))


print(unrolled.source_module(["v:f32[?]"]))
