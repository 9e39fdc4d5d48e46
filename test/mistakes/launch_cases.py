"""Mistakes of kernels and their calls: grids, arguments, demands, threads and shared memory."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np
from cases import case, kernel, m, x, y

import tilec
import tilec.language as tl


@case
def constexpr_annotation():
    @kernel
    def k(x, y, B: tl.constexpr = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def thread_index():
    @kernel
    def k(x, y):
        i = tl.thread_id(0)
        tl.store(y, i, tl.load(x, i, 1))

    k(x, y)


@case
def shape_from_argument():
    @kernel
    def k(x, y, n):
        tl.store(y, 0, tl.load(x, 0, n))

    k(x, y, 64)


@case
def forgotten_grid():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, y)


@case
def grid_in_call_like_cuda():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k[(1,), (256,)](x, y)


@case
def grid_of_four():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k[1, 1, 1, 1](x, y)


@case
def grid_is_float():
    @tilec.kernel(device="emulator", grid=lambda x, B: x.shape[0] / B)
    def k(x, y, B: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def grid_rule_of_other_names():
    @tilec.kernel(device="emulator", grid=lambda META: tl.cdiv(256, META["B"]))
    def k(x, y, B: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def shared_memory_by_hand():
    @kernel
    def k(x, y):
        s = tl.shared((32,), tl.f32)
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def barrier():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.syncthreads()
        tl.store(y, 0, t)

    k(x, y)


@case
def debug_barrier():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.debug_barrier()
        tl.store(y, 0, t)

    k(x, y)


@case
def too_large_a_tile():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 1 << 24))

    k(x, y)


@case
def too_many_stages():
    @kernel
    def k(a, b, c):
        acc = tl.zeros((64, 64), tl.f32)
        for i in tl.range(0, 8, stages=40):
            acc += tl.dot(tl.load(a, (0, i * 64), (64, 64)), tl.load(b, (i * 64, 0), (64, 64)))
        tl.store(c, (0, 0), acc)

    big = np.ones((512, 512), np.float16)
    k(big, big, m)


@case
def num_warps_three():
    @kernel(num_warps=3)
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def unknown_demand():
    @tilec.kernel(num_stages=3)
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def missing_argument():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x)


@case
def text_argument():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k("x", y)


@case
def const_given_an_array():
    @kernel
    def k(x, y, B: tl.const):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y, np.array([64]))


@case
def tile_size_zero():
    @kernel
    def k(x, y, B: tl.const):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y, 0)


@case
def not_a_function():
    tilec.kernel(3)


@case
def class_method():
    class A:
        @kernel
        def k(self, x, y):
            tl.store(y, 0, tl.load(x, 0, 32))

    A().k(x, y)


@case
def fancy_cuda_names():
    @kernel
    def k(x, y):
        i = tl.blockIdx.x * 32
        tl.store(y, i, tl.load(x, i, 32))

    k(x, y)


@case
def device_unknown():
    tilec.device("gpu0")


@case
def device_is_a_number():
    tilec.device(0)


@case
def target_unknown():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k.compile(["x:f32[?]", "y:f32[?]"], target="hopper")
