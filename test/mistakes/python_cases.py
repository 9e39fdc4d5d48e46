"""Mistakes with Python inside kernels: what statements and values it has no counterpart for."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

from cases import case, kernel, x, y

import tilec
import tilec.language as tl


@case
def while_true():
    @kernel
    def k(x, y):
        while True:
            tl.store(y, 0, tl.load(x, 0, 64))

    k(x, y)


@case
def python_list_append():
    @kernel
    def k(x, y):
        parts = []
        for i in range(4):
            parts.append(tl.load(x, i * 32, 32))
        tl.store(y, 0, parts[0])

    k(x, y)


@case
def return_value():
    @kernel
    def k(x):
        return tl.sum(tl.load(x, 0, 64))

    k(x)


@case
def unknown_name():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, BLOCK))

    k(x, y)


@case
def global_array():
    @kernel
    def k(y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(y)


@case
def variable_changes_type():
    @kernel
    def k(x, y, n):
        t = 0
        for i in range(n):
            t = t + tl.load(x, i * 32, 32)
        tl.store(y, 0, t)

    k(x, y, 4)


@case
def variable_of_one_branch():
    @kernel
    def k(x, y, n):
        if n > 3:
            t = tl.load(x, 0, 32)
        tl.store(y, 0, t)

    k(x, y, 4)


@case
def inner_function():
    @kernel
    def k(x, y):
        def double(t):
            return t * 2

        tl.store(y, 0, double(tl.load(x, 0, 32)))

    k(x, y)


@case
def try_except():
    @kernel
    def k(x, y):
        try:
            tl.store(y, 0, tl.load(x, 0, 32))
        except ValueError:
            pass

    k(x, y)


@case
def dictionary():
    @kernel
    def k(x, y):
        d = {"a": 32}
        tl.store(y, 0, tl.load(x, 0, d["a"]))

    k(x, y)


@case
def string_formatting():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        print("%f" % t)
        tl.store(y, 0, t)

    k(x, y)


@case
def loop_over_array():
    @kernel
    def k(x, y):
        for v in x:
            tl.store(y, 0, tl.full((32,), v, tl.f32))

    k(x, y)


@case
def range_of_float():
    @kernel
    def k(x, y, n):
        for i in range(n / 2):
            tl.store(y, i * 32, tl.load(x, i * 32, 32))

    k(x, y, 4)


@case
def kernel_from_kernel():
    @kernel
    def inner(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    @kernel
    def k(x, y):
        inner(x, y)

    k(x, y)


@case
def assert_shape_in_kernel():
    @kernel
    def k(x, y):
        assert x.shape[0] == 300, "length"
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def lambda_source():
    tilec.kernel(lambda x, y: tl.store(y, 0, tl.load(x, 0, 32)), grid=1, device="emulator")(x, y)


@case
def assert_without_a_text():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 64)
        assert t < 63
        tl.store(y, 0, t)

    k(x, y)


@case
def assert_by_function():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 64)
        tl.assert_(t > 0, "positive")
        tl.store(y, 0, t)

    k(x, y)
