# ruff: noqa: E501
# Lists of arrays: their types, positions that are asserted, parts.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# CHECK-LABEL: func.func @halve(
# CHECK-SAME: %arg0: memref<?xmemref<?xf32, strided<[1]>>> {tile.facts = {align = 16 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}, tile.flat = true, tile.name = "xs"}
# CHECK-SAME: tile.grid = ["parts(xs, 64)", "1", "1"]
@tilec.kernel(grid=lambda xs, B: tl.parts(xs, B))
def halve(xs: tl.flat_arrays, ys: tl.flat_arrays, B: tl.const):
    # CHECK: %[[PID:.*]] = "tile.program_id"() {axis = 0 : i32}
    # CHECK: %[[PART:.*]]:2 = "tile.find_part"(%arg0, %[[PID]]) {elements = 64 : i32}
    which, start = tl.part(xs, B)
    # CHECK: "tile.array_at"(%arg0, %[[PART]]#0) {options = {inside = true}}
    # CHECK: "tile.load"(%{{.*}}, %[[PART]]#1)
    x = tl.load(xs[which], start, B)
    # CHECK: %[[COUNT:.*]] = memref.dim %arg1
    # CHECK: %[[THERE:.*]] = arith.cmpi ult, %[[PART]]#0, %[[COUNT]] : index
    # CHECK: "tile.assert"(%[[THERE]]) {message = "ys has no array at this position"}
    # CHECK: "tile.array_at"(%arg1, %[[PART]]#0) {options = {}}
    tl.store(ys[which], start, x * 0.5)


print(halve.source_module(["xs[]:f32[?]", "ys[]:f32[?]"], {"B": 64}))


# CHECK-LABEL: func.func @widths(
# CHECK-SAME: %arg0: memref<?xmemref<?x8xbf16, strided<[?, 1]>>>
# CHECK-NOT: tile.flat
# CHECK-SAME: tile.grid = ["len(xs)", "1", "1"]
@tilec.kernel(grid=lambda xs: len(xs))
def widths(xs: tl.arrays, y: tl.array):
    i = tl.program_id(0)
    # CHECK: %[[X:.*]] = "tile.array_at"
    # CHECK: memref.dim %[[X]], %c0
    tl.store(y, i, (xs[i].shape[0] + xs[i].shape[1] + len(xs)).to(tl.i32))


print(widths.source_module(["xs[]:bf16[?,8;?:8,1]", "y:i32[?]"]))
