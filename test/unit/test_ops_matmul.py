"""`tilec.ops.matmul` on the emulator against float64: dtypes, layouts, batches, epilogues."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from product_checks import BF16, E4M3, E5M2, check, draw, wide

import tilec
from tilec.ops import (
    matmul_kernel,
    plain_product,
    product_launch,
)
from tilec.ops.tile_choice import TileChoice


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")


CASES = [
    # dtype of a, of b, of the result, shapes of a and b
    (np.float64, np.float64, np.float64, (19, 23), (23, 29)),
    (np.float32, np.float32, np.float32, (33, 40), (40, 70)),
    (np.float16, np.float16, np.float16, (67, 72), (72, 24)),
    (np.float16, np.float16, np.float32, (5, 130), (130, 9)),
    (BF16, BF16, BF16, (17, 64), (64, 40)),
    (E4M3, E4M3, BF16, (18, 96), (96, 35)),
    (E5M2, E4M3, np.float16, (16, 48), (48, 16)),
    (np.int8, np.int8, np.int32, (21, 65), (65, 34)),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("one", "two", "result", "a_shape", "b_shape"), CASES)
def test_dtypes(one: Any, two: Any, result: Any, a_shape: Any, b_shape: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = draw(rng, a_shape, one), draw(rng, b_shape, two)
    wanted = result if result is np.float32 else None  # all others are what is usual
    if two is not one:
        wanted = result
    found = tilec.ops.matmul(a, b, out_dtype=wanted)
    check(found, wide(a) @ wide(b), result)


def test_f32_on_tensor_cores_and_f16_sums_are_what_is_asked_for() -> None:
    rng = np.random.default_rng(2)
    a, b = draw(rng, (40, 56), np.float32), draw(rng, (56, 24), np.float32)
    rounded = tilec.ops.matmul(a, b, precision="tf32")
    check(rounded, wide(a) @ wide(b), np.float32, 2e-3)
    exact = tilec.ops.matmul(a, b)
    assert not np.array_equal(rounded, exact)
    a16, b16 = a.astype(np.float16), b.astype(np.float16)
    summed = tilec.ops.matmul(a16, b16, acc_dtype="f16", out_dtype=np.float32)
    check(summed, wide(a16) @ wide(b16), np.float32, 1e-2)
    assert not np.array_equal(summed, tilec.ops.matmul(a16, b16, out_dtype=np.float32))


def padded(array: np.ndarray, extra: int) -> np.ndarray:
    """The same values with a gap after each row."""
    *lead, n = array.shape
    memory = np.full((*lead, n + extra), np.nan).astype(array.dtype)
    memory[..., :n] = array
    return memory[..., :n]


LAYOUTS = {
    "rows": lambda x: np.ascontiguousarray(x),
    "columns": lambda x: np.asfortranarray(x),
    "padded": lambda x: padded(x, 3),
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "every second": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "shifted": lambda x: padded(np.concatenate([x[:, :1], x], axis=1), 1)[:, 1:],
}


@pytest.mark.parametrize(
    ("a_layout", "b_layout", "out_layout"),
    [
        ("rows", "columns", "rows"),
        ("columns", "rows", "columns"),
        ("columns", "columns", "padded"),
        ("padded", "backwards", "every second"),
        ("every second", "shifted", "backwards"),
    ],
)
def test_layouts(a_layout: str, b_layout: str, out_layout: str) -> None:
    rng = np.random.default_rng(3)
    a = LAYOUTS[a_layout](draw(rng, (38, 48), np.float16))
    b = LAYOUTS[b_layout](draw(rng, (48, 26), np.float16))
    out = LAYOUTS[out_layout](np.full((38, 26), np.nan, np.float16))
    assert tilec.ops.matmul(a, b, out) is out
    check(out, wide(a) @ wide(b), np.float16)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("sizes", [(139, 1, 72), (1, 67, 139), (139, 67, 1), (1, 1, 139)])
def test_axes_of_one_element(
    sizes: tuple[int, int, int], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along which a stride says nothing: what the framework wrote there, or anything."""
    monkeypatch.setenv("TILEC_TARGET", target)
    m, k, n = sizes
    rng = np.random.default_rng(sizes)
    a, b = draw(rng, (m, k), np.float16), draw(rng, (k, n), np.float16)
    orders = "rows", "columns", "padded"
    for one, other in [(a_order, b_order) for a_order in orders for b_order in orders]:
        out = tilec.ops.matmul(LAYOUTS[one](a), LAYOUTS[other](b))
        check(out, wide(a) @ wide(b), np.float16)


def test_outer_products_get_what_their_tiles_want(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both strides of an (m, 1) are 1: tensor copies, which clusters and turns need, want one."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(8)
    a, b = draw(rng, (200, 1), np.float16), draw(rng, (1, 136), np.float16)
    shared = TileChoice(64, 64, 64, 1, 1.0, cluster=(2, 1))
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: shared)
    check(tilec.ops.matmul(a, b), wide(a) @ wide(b), np.float16)


BATCHES = [
    ((3, 2, 5, 16), (3, 2, 16, 9)),
    ((2, 1, 7, 16), (3, 16, 5)),  # broadcast both ways
    ((4, 6, 16), (16, 9)),  # a linear layer: one product of 24 rows
    ((16,), (2, 16, 9)),
    ((5, 7, 16), (16,)),
    ((16,), (16,)),
    ((0, 5), (5, 3)),
    ((5, 0), (0, 3)),
    ((2, 0, 16), (16, 4)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), BATCHES)
def test_batches_and_vectors(a_shape: Any, b_shape: Any) -> None:
    rng = np.random.default_rng(4)
    a, b = draw(rng, a_shape, np.float16), draw(rng, b_shape, np.float16)
    check(tilec.ops.matmul(a, b), wide(a) @ wide(b), np.float16)


def test_rows_of_a_linear_layer_become_one_product() -> None:
    """And not where strides forbid it, or where a scale differs from matrix to matrix."""
    rng = np.random.default_rng(5)
    a, b = draw(rng, (3, 5, 16), np.float16), draw(rng, (16, 8), np.float16)
    swapped = np.ascontiguousarray(a.transpose(1, 0, 2)).transpose(1, 0, 2)
    expected = wide(a) @ wide(b)
    column_scale = rng.standard_normal((3, 1, 8))[:, 0].astype(np.float32)
    plain_product._plans.clear()
    check(tilec.ops.matmul(a, b), expected, np.float16)
    check(tilec.ops.matmul(swapped, b), expected, np.float16)
    scaled = tilec.ops.matmul(a, b, column_scale=column_scale)
    check(scaled, expected * column_scale[:, None, :], np.float16)
    plans = list(plain_product._plans.values())
    assert [(plan.m, plan.lead) for plan in plans] == [(15, ()), (5, (3,)), (5, (3,))]


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    None: lambda x: x,
}


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_epilogues_are_computed_in_the_documented_order(activation: str | None) -> None:
    rng = np.random.default_rng(6)
    a, b = draw(rng, (2, 19, 24), np.float16), draw(rng, (2, 24, 21), np.float16)
    bias, columns = draw(rng, (21,), np.float16), draw(rng, (2, 21), np.float32)
    rows, residual = draw(rng, (2, 19), np.float32), draw(rng, (19, 1), np.float32)
    found = tilec.ops.matmul(
        a,
        b,
        bias=bias,
        activation=activation,
        scale=0.75,
        row_scale=rows,
        column_scale=columns,
        residual=residual,
        out_dtype="f32",
    )
    z = wide(a) @ wide(b) * 0.75 * rows[:, :, None] * columns[:, None, :] + wide(bias)
    check(found, ACTIVATIONS[activation](z) + residual, np.float32)


def squared(x: Any) -> Any:
    return x * x


def test_an_activation_of_ones_own_and_a_scale_in_memory() -> None:
    rng = np.random.default_rng(7)
    a, b = draw(rng, (20, 16), np.float64), draw(rng, (16, 12), np.float64)
    scale = np.array(1.5, np.float32)
    found = tilec.ops.matmul(a, b, activation=squared, scale=scale)
    check(found, (1.5 * (a @ b)) ** 2, np.float64)


@pytest.mark.parametrize(
    ("inputs", "result", "scale"),
    [
        (np.int8, np.int8, 0.01),
        (np.int8, np.float16, 1e-3),
        (np.float16, np.int8, 20.0),
        (BF16, E4M3, 0.3),
        (E4M3, E5M2, 0.3),
        (np.float32, np.int32, 1e9),
    ],
)
def test_outputs_of_other_dtypes_round_and_saturate(inputs: Any, result: Any, scale: float) -> None:
    rng = np.random.default_rng(8)
    a, b = draw(rng, (18, 40), inputs), draw(rng, (40, 22), inputs)
    found = tilec.ops.matmul(a, b, scale=scale, out_dtype=result)
    expected = wide(a) @ wide(b) * scale
    # Near a half either may come; sums of f32 have 24 bits, and 2^31 - 128 is the largest f32 int.
    check(found, expected, result, {np.int8: 1.0, np.int32: 4096.0}.get(result, 0.0))


def test_i8_without_an_epilogue_saturates_too() -> None:
    a = np.full((3, 200), 127, np.int8)
    b = np.stack([np.full(200, 127), np.full(200, -128), np.ones(200)], axis=1).astype(np.int8)
    b[1:, 2] = 0
    assert tilec.ops.matmul(a, b, out_dtype="int8").tolist() == [[127, -128, 127]] * 3


def test_out_may_be_the_residual() -> None:
    rng = np.random.default_rng(9)
    a, b = draw(rng, (20, 24), np.float32), draw(rng, (24, 18), np.float32)
    c = draw(rng, (20, 18), np.float32)
    expected = wide(a) @ wide(b) + wide(c)
    check(tilec.ops.matmul(a, b, c, residual=c), expected, np.float32)


# -- tiles


def test_split_k_adds_the_parts_up_and_does_the_epilogue_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: TileChoice(16, 32, 32, 4, 1.0))
    rng = np.random.default_rng(10)
    for a_shape, b_shape in (((2, 9, 300), (2, 300, 35)), ((300,), (300, 20)), ((7, 40), (40, 8))):
        a, b = draw(rng, a_shape, np.float16), draw(rng, b_shape, np.float16)
        bias = draw(rng, b_shape[-1:], np.float32)
        found = tilec.ops.matmul(a, b, bias=bias, activation="relu", scale=2.0, out_dtype="f32")
        expected = np.maximum(2 * (wide(a) @ wide(b)) + bias, 0)
        check(found, expected, np.float32)


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("splits", [1, 3])
def test_the_transposed_product_is_the_same(
    splits: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything that an epilogue has, batched and not, by wide instructions."""
    monkeypatch.setenv("TILEC_TARGET", target)
    choice = TileChoice(64, 16, 64, splits, 1.0, is_transposed=True, is_single=splits == 1)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    rng = np.random.default_rng(12)
    for lead, m, n, k in (((), 5, 72, 136), ((2,), 17, 40, 200), ((), 1, 65, 33)):
        a, b = draw(rng, (*lead, m, k), np.float16), draw(rng, (*lead, k, n), np.float16)
        bias, rows = draw(rng, (n,), np.float32), draw(rng, (*lead, m), np.float32)
        columns, residual = draw(rng, (n,), np.float32), draw(rng, (m, n), np.float16)
        named = {"bias": bias, "row_scale": rows, "column_scale": columns, "residual": residual}
        found = tilec.ops.matmul(a, b, **named, activation="relu", scale=0.5)
        scaled = 0.5 * (wide(a) @ wide(b)) * wide(rows)[..., None] * columns
        check(found, np.maximum(scaled + bias, 0) + wide(residual), np.float16)
        transposed_b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        check(tilec.ops.matmul(a, transposed_b), wide(a) @ wide(b), np.float16)


@pytest.mark.parametrize("m", [130, 300])
def test_pairs_multiply_together(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair of which one has few rows, and three programs, of which one has nobody beside it."""
    monkeypatch.setenv("TILEC_TARGET", "sm_100a")
    choice = TileChoice(128, 64, 64, 1, 1.0, cluster=(2, 1))
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    rng = np.random.default_rng(15)
    a, b, bias = (draw(rng, shape, np.float16) for shape in ((2, m, 136), (2, 136, 72), (72,)))
    check(tilec.ops.matmul(a, b, bias=bias), wide(a) @ wide(b) + wide(bias), np.float16)


@pytest.mark.parametrize(
    ("cluster", "is_single"),
    [((2, 1), True), ((1, 2), True), ((4, 1), True), ((2, 1), False), ((1, 2), False)],
)
def test_clusters_share_operands(
    cluster: tuple[int, int], is_single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a residual that is the result, past the end of the grid, transposed and not; each
    program by CTAs of its own, or in rounds."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(16)
    a, b = draw(rng, (72, 136), np.float16), draw(rng, (136, 200), np.float16)
    for is_transposed in (False, True):
        choice = TileChoice(64, 64, 64, 1, 1.0, is_transposed, is_single, cluster)
        monkeypatch.setattr(product_launch, "choose_tiles", lambda *_, found=choice: found)
        c = draw(rng, (72, 200), np.float16)
        expected = wide(a) @ wide(b) + wide(c)
        check(tilec.ops.matmul(a, b, c, residual=c), expected, np.float16)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_sums_of_fp8_may_be_kept_in_f32(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever k is: the last sum may have fewer elements, and a part of k may begin anywhere."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(14)
    for m, n, k in ((70, 40, 600), (5, 24, 256), (3, 16, 1100)):
        a, b = draw(rng, (m, k), E4M3), draw(rng, (n, k), E4M3).T
        check(
            tilec.ops.matmul(a, b, precision="f32", out_dtype="f32"), wide(a) @ wide(b), np.float32
        )
    # 3 parts of 384 elements: none is a whole sum.
    choice = TileChoice(16, 32, 128, 3, 1.0)
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: choice)
    check(tilec.ops.matmul(a, b, precision="f32", out_dtype="f32"), wide(a) @ wide(b), np.float32)


def test_split_sums_are_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In f32, where another order of the parts would show."""
    monkeypatch.setattr(product_launch, "choose_tiles", lambda *_: TileChoice(16, 32, 32, 8, 1.0))
    rng = np.random.default_rng(13)
    a, b = draw(rng, (9, 1000), np.float16), draw(rng, (1000, 40), np.float16)
    first = tilec.ops.matmul(a, b, out_dtype="f32")
    for _ in range(3):
        assert np.array_equal(tilec.ops.matmul(a, b, out_dtype="f32"), first)


def test_sums_of_parts_are_asked_for_before_they_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 17: the first, eight, and eight again, in that order in each element."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    sums = np.random.default_rng(15).standard_normal((17, 10, 48)).astype(np.float32)
    c = np.full((10, 48), np.nan, np.float32)
    arguments = sums, c, 0, 0, 0, 0, 1.0, 0
    constants = {"BM": 4, "BN": 64, "SPLITS": 17}
    matmul_kernel.combine.on("emulator:check")(*arguments, **constants)
    expected = sums[0]
    for part in sums[1:]:
        expected = expected + part
    assert np.array_equal(c, expected)
    ptx = matmul_kernel.combine.compiled(*arguments, **constants).ptx
    kinds = re.findall(r"(ld\.global|add\.f32)", ptx)
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["ld.global", "add.f32"] * 2


def test_tuned_products_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    space = [{"BM": [16], "BN": [32, 64], "BK": [32], "num_warps": [4]}]
    monkeypatch.setattr(product_launch, "tile_space", lambda _: space)
    monkeypatch.setattr(product_launch, "tuned_product", product_launch.tuned_product.__wrapped__)
    rng = np.random.default_rng(11)
    a, b = draw(rng, (20, 40), np.float16), draw(rng, (40, 50), np.float16)
    bias = draw(rng, (50,), np.float16)
    check(tilec.ops.matmul(a, b, bias=bias, tune=True), wide(a) @ wide(b) + wide(bias), np.float16)
