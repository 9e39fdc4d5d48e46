# ruff: noqa: E501
# Shapes: broadcasts compose into one, rank-0 tiles become scalars, row vectors keep their axis.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# CHECK-LABEL: func.func @broadcasts(
# CHECK-DAG:   %[[ROW:.*]] = "tile.load"{{.*}} -> tensor<8xf32>
# CHECK-DAG:   %[[COL:.*]] = "tile.load"{{.*}} -> tensor<4xf32>
# CHECK-NOT:   tensor<1x
# CHECK:       %[[R:.*]] = "tile.broadcast"(%[[ROW]]) {dims = array<i32: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
# CHECK:       %[[C:.*]] = "tile.broadcast"(%[[COL]]) {dims = array<i32: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
# CHECK:       arith.mulf %[[R]], %[[C]]
@tilec.kernel
def broadcasts(v: tl.array, x: tl.array):
    row, column = tl.load(v, 0, 8), tl.load(v, 8, 4)
    tl.store(x, (0, 0), row[None, :] * column[:, None])


print(broadcasts.source_module(["v:f32[?]", "x:f32[?,?]"]))


# CHECK-LABEL: func.func @rank_zero(
# CHECK:       %[[MAX:.*]] = "tile.reduce"{{.*}}
# CHECK:       -> tensor<f32>
# CHECK:       "tile.broadcast"(%[[MAX]]) {dims = array<i32>} : (tensor<f32>) -> tensor<8xf32>
# CHECK:       tensor.extract %[[MAX]][] : tensor<f32>
@tilec.kernel
def rank_zero(v: tl.array):
    t = tl.load(v, 0, 8)
    highest = tl.max(t)
    tl.store(v, 0, t - highest)
    tl.store(v, 8, highest * 2)


print(rank_zero.source_module(["v:f32[?]"]))


# The tile runs along the last dimensions unless dims says otherwise.
# CHECK-LABEL: func.func @dims(
# CHECK:       "tile.load"{{.*}} {dims = array<i32: 1>{{.*}} -> tensor<8xf32>
# CHECK:       "tile.load"{{.*}} {dims = array<i32: 1, 0>{{.*}} padding = 1.000000e+00 : f32} {{.*}} -> tensor<8x4xf32>
# CHECK:       "tile.load"{{.*}} {dims = array<i32>{{.*}} -> tensor<f32>
# CHECK:       "tile.store"{{.*}} {dims = array<i32: 1, 0>, options = {cache = "streaming"}}
@tilec.kernel
def dims(x: tl.array):
    a = tl.load(x, (3, 0), 8)
    b = tl.load(x, (0, 0), (8, 4), dims=(1, 0), padding=1)
    c = tl.load(x, (0, 0), ())
    tl.store(x, (0, 0), b + a[:, None] + c, dims=(1, 0), cache="streaming")


print(dims.source_module(["x:f32[?,?]"]))
