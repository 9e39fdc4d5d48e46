"""Mistakes of those who know torch, JAX or NumPy: members, methods, keywords, decorators."""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np
from cases import case, h, kernel, m, x, y

import tilec
import tilec.language as tl


def run(body):
    """A case whose kernel is `body`, on x and y."""

    def program():
        kernel(body)(x, y)

    program.__name__, program.__module__ = body.__name__, body.__module__
    return case(program)


@run
def array_turned(x, y):
    tl.store(y, 0, tl.load(x.T, 0, 64))


@run
def array_numel(x, y):
    tl.store(y, 0, tl.full(64, x.numel(), tl.f32))


@run
def array_strides(x, y):
    tl.store(y, 0, tl.load(x, tl.program_id(0) * x.stride(0), 64))


@run
def tile_detached(x, y):
    tl.store(y, 0, tl.load(x, 0, 64).detach())


@run
def tile_float_method(x, y):
    tl.store(y, 0, tl.load(x, 0, 64).float())


@run
def tile_at_set(x, y):
    tl.store(y, 0, tl.load(x, 0, 64).at[0].set(1.0))


@run
def tile_changed_in_place(x, y):
    tile = tl.load(x, 0, 64)
    tile.add_(1.0)
    tl.store(y, 0, tile)


@run
def tile_cumsum_method(x, y):
    tl.store(y, 0, tl.load(x, 0, 64).cumsum())


@run
def argmax_by_dim(x, y):
    tl.store(y, 0, tl.argmax(tl.load(x, 0, 64), dim=-1))


@run
def zip_of_ranges(x, y):
    for i, j in zip(tl.range(0, 4), tl.range(4, 8)):
        tl.store(y, i, tl.load(x, j, 1))


@run
def enumerate_a_tile(x, y):
    for i, value in enumerate(tl.load(x, 0, 64)):
        tl.store(y, i, value)


@run
def id_in_a_tuple(x, y):
    if tl.program_id(0) in (0, 1):
        tl.store(y, 0, tl.load(x, 0, 64))


@case
def broadcast_output():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, np.lib.stride_tricks.as_strided(y, (64,), (0,)))


@case
def grid_is_a_truth():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k[x.size > 64](x, y)


@case
def target_is_a_number():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k.compile(["x:f32[?]", "y:f32[?]"], target=90)


@case
def spec_cut_off():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k.compile(["x:f32[?", "y:f32[?]"], target="sm_90a")


@case
def spec_of_numpy():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k.compile(["x:float32[?]", "y:f32[?]"], target="sm_90a")


@case
def autotune_without_a_space():
    @tilec.autotune
    @kernel
    def k(x, y, N: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, N))

    k(x, y)


@case
def kernel_above_autotune():
    @tilec.kernel(grid=1)
    @tilec.autotune(search={"N": [32, 64]})
    def k(x, y, N: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, N))

    k(x, y)


@case
def grid_by_position():
    @tilec.kernel(1)
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))


@case
def star_parameters():
    @tilec.kernel(grid=1)
    def k(*arrays):
        tl.store(arrays[1], 0, tl.load(arrays[0], 0, 64))

    k(x, y)


@case
def keyword_parameters():
    @tilec.kernel(grid=1)
    def k(x, y, **options):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, y)


@case
def pointer_annotation():
    @kernel
    def k(x: tl.pointer, y: tl.pointer):
        tl.store(y, 0, tl.load(x, 0, 64))


@case
def argument_of_another_name():
    @kernel
    def k(x, out):
        tl.store(out, 0, tl.load(x, 0, 64))

    k(x, output=y)


@case
def function_of_the_language_outside():
    tl.store(y, 0, tl.load(x, 0, 64))


@case
def attention_is_causal():
    q = h.reshape(1, 4, 96, 16)
    tilec.ops.attention(q, q, q, is_causal=True)


@case
def attention_with_a_mask():
    q = h.reshape(1, 4, 96, 16)
    tilec.ops.attention(q, q, q, attn_mask=np.ones((96, 96), bool))


@case
def attention_in_f32():
    q = m.reshape(1, 4, 96, 16)
    tilec.ops.attention(q, q, q)


@case
def attention_without_a_batch():
    q = h.reshape(4, 96, 16)
    tilec.ops.attention(q, q, q)


@case
def dropout_without_a_seed():
    q = h.reshape(1, 4, 96, 16)
    tilec.ops.attention(q, q, q, dropout=0.1)


@case
def product_of_wrong_shapes():
    tilec.ops.matmul(h, h)


@case
def product_of_two_dtypes():
    tilec.ops.matmul(h, m.T)


@case
def activation_of_numpy():
    tilec.ops.matmul(h, h.T, activation=np.tanh)


@case
def autotune_by_a_key():
    @tilec.autotune(configs=[{"N": 32}], key=["n"])
    @kernel
    def k(x, y, n, N: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, N))

    k(x, y, 64)


@case
def python_file_as_artefact():
    tilec.load(__file__)
