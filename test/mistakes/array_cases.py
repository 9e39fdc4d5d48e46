"""Mistakes with arrays and lists of them: pointers, masks, subscripts, offsets, dtypes."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np
from cases import case, h, kernel, m, x, y

import tilec.language as tl


@case
def triton_pointers():
    @kernel
    def k(x, y, B: tl.const = 64):
        offs = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + offs, tl.load(x + offs))

    k(x, y)


@case
def triton_load_of_offsets():
    @kernel
    def k(x, y):
        offs = tl.arange(0, 64)
        tl.store(y, offs, tl.load(x, offs))

    k(x, y)


@case
def mask_argument():
    @kernel
    def k(x, y, n):
        offs = tl.arange(0, 64)
        tl.store(y, 0, tl.load(x, 0, 64, mask=offs < n, other=0.0))

    k(x, y, 40)


@case
def subscript_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, x[0:64])

    k(x, y)


@case
def assign_element():
    @kernel
    def k(x, y):
        i = tl.program_id(0)
        y[i] = x[i]

    k(x, y)


@case
def shape_from_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, x.shape[0]))

    k(x, y)


@case
def wrong_dtype_to_store():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, np.zeros(64, np.int32))


@case
def wrong_rank_of_offsets():
    @kernel
    def k(a, y):
        tl.store(y, 0, tl.load(a, 0, 64))

    k(m, y)


@case
def float_index():
    @kernel
    def k(x, y):
        i = tl.program_id(0) / 2
        tl.store(y, 0, tl.load(x, i, 32))

    k(x, y)


@case
def array_instead_of_tile():
    @kernel
    def k(x, y):
        tl.store(y, 0, x + 1)

    k(x, y)


@case
def list_of_numbers():
    @kernel
    def k(x: tl.array, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k([1.0, 2.0], y)


@case
def read_only_output():
    z = np.zeros(64, np.float32)
    z.flags.writeable = False

    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, z)


@case
def complex_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x.astype(np.complex64), y)


@case
def atomic_add_like_triton():
    @kernel
    def k(x, y):
        tl.atomic_add(y + tl.program_id(0), 1.0)

    k(x, y)


@case
def index_a_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.full((1,), t[0], tl.f32))

    k(x, y)


@case
def assign_into_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        t[0] = 1.0
        tl.store(y, 0, t)

    k(x, y)


@case
def store_swapped():
    @kernel
    def k(x, y):
        tl.store(tl.load(x, 0, 32), y, 0)

    k(x, y)


@case
def list_at_a_run_time_index():
    @kernel(grid=2)
    def k(xs, y):
        tl.store(y, 0, tl.load(xs[tl.program_id(0)], 0, 32))

    k([x, x], y)


@case
def loop_over_a_list():
    @kernel
    def k(xs: tl.arrays, y: tl.array):
        for x in xs:
            tl.store(y, 0, tl.load(x, 0, 32))

    k([x, x], y)


@case
def array_for_a_list():
    @kernel
    def k(xs: tl.arrays, y: tl.array):
        tl.store(y, 0, tl.load(xs[0], 0, 32))

    k(x, y)


@case
def list_of_two_dtypes():
    @kernel
    def k(xs: tl.flat_arrays, y: tl.array):
        tl.store(y, 0, tl.load(xs[0], 0, 32))

    k([x, h], y)


@case
def shorter_list():
    @kernel(grid=lambda xs: len(xs))
    def k(xs: tl.arrays, ys: tl.arrays):
        i = tl.program_id(0)
        tl.store(ys[i], 0, tl.load(xs[i], 0, 32))

    k.check([x, x], [y])


@case
def parts_of_an_array():
    @kernel(grid=lambda x: tl.parts(x, 64))
    def k(x: tl.array):
        i, start = tl.part(x, 64)

    k(x)
