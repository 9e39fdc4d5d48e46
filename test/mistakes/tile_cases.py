"""Mistakes with tiles: shapes, axes, dtypes, functions of other libraries."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np
from cases import case, h, kernel, m, x, y

import tilec.language as tl


@case
def shapes_do_not_match():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64) + tl.load(x, 0, 32))

    k(x, y)


@case
def dot_of_wrong_shapes():
    @kernel
    def k(a, y):
        t = tl.dot(tl.load(a, (0, 0), (64, 32)), tl.load(a, (0, 0), (64, 32)))
        tl.store(y, (0, 0), t)

    k(h, m)


@case
def dot_of_one_dimension():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.dot(tl.load(x, 0, 64), tl.load(x, 0, 64)))

    k(x, y)


@case
def dot_of_mixed_dtypes():
    @kernel
    def k(a, b, y):
        tl.store(y, (0, 0), tl.dot(tl.load(a, (0, 0), (64, 64)), tl.load(b, (0, 0), (64, 64))))

    k(h, m, m)


@case
def numpy_in_kernel():
    @kernel
    def k(x, y):
        tl.store(y, 0, np.exp(tl.load(x, 0, 64)))

    k(x, y)


@case
def math_in_kernel():
    import math

    @kernel
    def k(x, y):
        tl.store(y, 0, math.exp(tl.load(x, 0, 64)))

    k(x, y)


@case
def torch_names():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 64)
        tl.store(y, 0, t.mean() + tl.softmax(t, dim=0))

    k(x, y)


@case
def axis_by_numpy_keyword():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.sum(tl.load(x, (0, 0), (64, 64)), dim=1))

    k(m, y)


@case
def axis_out_of_range():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.sum(tl.load(x, 0, 64), axis=1))

    k(x, y)


@case
def branch_on_a_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        if t > 0:
            t = t * 2
        tl.store(y, 0, t)

    k(x, y)


@case
def ands_of_tiles():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.where(t > 1 and t < 5, t, 0.0))

    k(x, y)


@case
def chained_comparison_of_tiles():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.where(1 < t < 5, t, 0.0))

    k(x, y)


@case
def float64_dot():
    @kernel
    def k(a, y):
        t = tl.load(a, (0, 0), (64, 64))
        tl.store(y, (0, 0), tl.dot(t, t))

    k(m.astype(np.float64), m)


@case
def reshape_to_other_size():
    @kernel
    def k(x, y):
        tl.store(y, (0, 0), tl.load(x, 0, 64).reshape(8, 9))

    k(x, m)


@case
def astype():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).astype(tl.f16))

    k(x, y)


@case
def dtype_as_torch():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).to(tl.float16))

    k(x, y)


@case
def dtype_as_text():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).to("float16"))

    k(x, y)


@case
def tile_power_of_none():
    @kernel
    def k(x, y, bias=None):
        tl.store(y, 0, tl.load(x, 0, 32) + bias)

    k(x, y)


@case
def rows_without_their_sums():
    @kernel
    def k(a, b):
        t = tl.load(a, (0, 0), (64, 32))
        tl.store(b, (0, 0), t / tl.sum(t, 1))

    k(m, m.copy())


@case
def value_before_shape():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.full(0.0, (64,), tl.f32))

    k(x, y)


@case
def transpose_to_an_order():
    @kernel
    def k(a, b):
        tl.store(b, (0, 0), tl.load(a, (0, 0), (64, 32)).transpose((1, 0)))

    k(m, m.copy())
