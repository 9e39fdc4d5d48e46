"""Gathers whose rows the copy engine finds itself, in im2col mode: results against float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.examples.convolution import convolve
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.errors import ArgumentError

BF16 = ml_dtypes.bfloat16
TILES = {"BM": 128, "BN": 64, "BK": 32}


@pytest.fixture(params=["sm_90a", "sm_100a"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Targets that have tensor copies and roles."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0] * y.shape[1], BM))
def along(
    x: tl.array,
    w: tl.array,
    y: tl.array,
    STRIDE: tl.const = 1,
    PAD: tl.const = 0,
    APART: tl.const = 1,
    BM: tl.const = 128,
    BN: tl.const = 64,
    BK: tl.const = 32,
):
    """A convolution along one dimension, whose window's elements lie APART."""
    row = tl.program_id(0) * BM + tl.arange(BM)[:, None]
    image, q = row // y.shape[1], row % y.shape[1]
    acc = tl.zeros((BM, BN), tl.f32)
    for s in tl.range(0, w.shape[0]):
        for k in tl.range(0, x.shape[2], BK):
            at = (image, q * STRIDE - PAD + s * APART, k + tl.arange(BK)[None, :])
            acc = tl.dot(tl.gather(x, at), tl.load(w, (s, k, 0), (BK, BN)), acc)
    tl.scatter(y, (image, q, tl.arange(BN)[None, :]), acc.to(y.dtype))


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0] * y.shape[1] * y.shape[2] * y.shape[3], BM))
def through(
    x: tl.array,
    w: tl.array,
    y: tl.array,
    STRIDE: tl.const = 1,
    PAD: tl.const = 0,
    BM: tl.const = 128,
    BN: tl.const = 64,
    BK: tl.const = 32,
):
    """A convolution along three dimensions."""
    depth, height, width = y.shape[1], y.shape[2], y.shape[3]
    row = tl.program_id(0) * BM + tl.arange(BM)[:, None]
    image, o = row // width // height // depth, row // width // height % depth
    p, q = row // width % height, row % width
    acc = tl.zeros((BM, BN), tl.f32)
    for step in tl.range(0, w.shape[0] * w.shape[1] * w.shape[2]):
        t, r = step // w.shape[2] // w.shape[1], step // w.shape[2] % w.shape[1]
        s = step % w.shape[2]
        for k in tl.range(0, x.shape[4], BK):
            at = tuple(STRIDE * digit - PAD for digit in (o, p, q))
            at = (image, at[0] + t, at[1] + r, at[2] + s, k + tl.arange(BK)[None, :])
            acc = tl.dot(tl.gather(x, at), tl.load(w, (t, r, s, k, 0), (BK, BN)), acc)
    tl.scatter(y, (image, o, p, q, tl.arange(BN)[None, :]), acc.to(y.dtype))


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0] * y.shape[1] * y.shape[2], BM))
def written_otherwise(
    x: tl.array, w: tl.array, y: tl.array, H: tl.const, BM: tl.const = 128, BN: tl.const = 64
):
    """A convolution by a window of 3 x 3, whose digits are quotients of remainders, and remainders
    of these; H: how many rows a result has, 0 where the launch knows."""
    height, width = y.shape[1] if H == 0 else H, y.shape[2]
    row = tl.program_id(0) * BM + tl.arange(BM)[:, None]
    inside = row % (height * width)
    image, p, q = row // (width * height), inside // width, inside % width
    acc = tl.zeros((BM, BN), tl.f32)
    for step in tl.range(0, 9):
        at = (image, p + (step // 3 - 1), step % 3 + q - 1)
        for k in tl.range(0, x.shape[3], 32):
            rows = tl.gather(x, (*at, k + tl.arange(32)[None, :]))
            acc = tl.dot(rows, tl.load(w, (step // 3, step % 3, k, 0), (32, BN)), acc)
    tl.scatter(y, (image, p, q, tl.arange(BN)[None, :]), acc.to(y.dtype))


def expected(
    x: np.ndarray, w: np.ndarray, sizes: tuple[int, ...], stride: int, pad: int, apart: int = 1
) -> np.ndarray:
    """y[i, q] = sum of x[i, q stride - pad + s apart] @ w[s] for any number of dimensions q, in
    float64; zeros beside the images, and for images that are not there."""
    rank, reach = x.ndim - 2, stride * max(sizes) + apart * max(w.shape)
    wide = np.pad(x.astype(float), ((0, sizes[0]), *[(pad, reach)] * rank, (0, 0)))
    y = np.zeros(sizes)
    for at in itertools.product(*map(range, w.shape[:-2])):
        starts = [apart * s for s in at]
        window = tuple(
            slice(start, start + stride * size, stride)
            for start, size in zip(starts, sizes[1:-1], strict=True)
        )
        y += wide[(slice(0, sizes[0]), *window)] @ w[at].astype(float)
    return y


def drawn(shape: tuple[int, ...], seed: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def has_walks(kernel: CompiledKernel) -> bool:
    """Whether it has a map in im2col mode."""
    return any(made.im2col is not None for made in kernel.tensor_maps)


def assert_walks(kernel: CompiledKernel) -> None:
    """The copy engine finds the rows, and one thread starts all copies."""
    found = decisions(kernel, "asynchronous copy")
    assert [text.split(" (")[0] for text in sorted(found)] == ["TMA", "TMA, in im2col mode"]
    (roles,) = decisions(kernel, "warp specialisation")
    assert roles.startswith("1 loading warp, ")
    assert kernel.ptx.count(".global.im2col.") == 1
    assert "cp.async.cg" not in kernel.ptx


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("images", "window", "filters", "stride", "pad"),
    [
        ((2, 7, 9, 40), (3, 3), 24, 1, 1),
        ((1, 11, 8, 136), (5, 2), 72, 2, 2),
        ((3, 5, 17, 64), (1, 1), 64, 1, 0),
        ((2, 17, 12, 72), (3, 2), 40, 3, 1),
        ((5, 3, 2, 8), (4, 3), 16, 1, 3),
        ((1, 33, 40, 24), (2, 3), 8, 8, 1),
    ],
)
def test_windows_of_images(
    images: Any, window: Any, filters: int, stride: int, pad: int, target: str
) -> None:
    """Windows inside and beside images, steps, rows that end within a tile, several programs."""
    for dtype, tolerance in ((np.float16, 1e-3), (BF16, 8e-3)):
        x, w = drawn(images, 0, dtype), drawn((*window, images[3], filters), 1, dtype)
        sizes = tuple(
            (size + 2 * pad - w.shape[i]) // stride + 1 for i, size in enumerate(images[1:3])
        )
        good = expected(x, w, (images[0], *sizes, filters), stride, pad)
        constants = {"STRIDE": stride, "PAD": pad, **TILES}
        for mode in modes():
            y = poisoned(good.shape, dtype)
            there = convolve.on(f"emulator:{mode}")
            there(x, w, y, **constants)
            atol = tolerance * np.abs(good).max()
            np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=atol)
        assert_walks(there.compiled(x, w, y, **constants))


@pytest.mark.parametrize(
    ("images", "window", "stride", "pad", "apart"),
    [((3, 41, 24), 5, 1, 2, 1), ((2, 90, 40), 3, 2, 1, 3), ((2, 900, 8), 3, 1, 300, 300)],
)
def test_rows_of_three_dimensions(
    images: Any, window: int, stride: int, pad: int, apart: int, target: str
) -> None:
    """Corners and offsets of 16 bits; the channels in a loop of their own."""
    x, w = drawn(images, 2), drawn((window, images[2], 40), 3)
    size = (images[1] + 2 * pad - apart * (window - 1) - 1) // stride + 1
    good = expected(x, w, (images[0], size, 40), stride, pad, apart)
    constants = {"STRIDE": stride, "PAD": pad, "APART": apart}
    for mode in modes():
        y = poisoned(good.shape, np.float16)
        along.on(f"emulator:{mode}")(x, w, y, **constants)
        np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=1e-3 * np.abs(good).max())
    assert_walks(along.compiled(x, w, y, **constants))


@pytest.mark.parametrize(
    ("images", "window", "stride", "pad"),
    [((2, 5, 4, 7, 24), (3, 2, 3), 1, 1), ((1, 7, 4, 9, 16), (2, 3, 1), 2, 1)],
)
def test_rows_of_five_dimensions(
    images: Any, window: Any, stride: int, pad: int, target: str
) -> None:
    """Corners and offsets of 5 bits."""
    x, w = drawn(images, 4), drawn((*window, images[4], 40), 5)
    sizes = tuple((n + 2 * pad - s) // stride + 1 for n, s in zip(images[1:4], window, strict=True))
    good = expected(x, w, (images[0], *sizes, 40), stride, pad)
    for mode in modes():
        y = poisoned(good.shape, np.float16)
        through.on(f"emulator:{mode}")(x, w, y, STRIDE=stride, PAD=pad)
        np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=1e-3 * np.abs(good).max())
    assert_walks(through.compiled(x, w, y, STRIDE=stride, PAD=pad))


@pytest.mark.parametrize("height", [0, 7])
def test_digits_written_otherwise(height: int, target: str) -> None:
    """Quotients of remainders by products, numbers among the factors."""
    x, w = drawn((3, 7, 9, 40), 16), drawn((3, 3, 40, 64), 17)
    good = expected(x, w, (3, 7, 9, 64), 1, 1)
    y = poisoned(good.shape, np.float16)
    written_otherwise(x, w, y, H=height)
    np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=1e-3 * np.abs(good).max())
    assert_walks(written_otherwise.compiled(x, w, y, H=height))


@pytest.mark.parametrize(
    ("images", "results", "window", "stride", "walks"),
    [
        ((2, 6, 60, 16), (2, 4, 8), (3, 3), 1, True),
        ((2, 4, 10, 8), (5, 9, 60), (1, 3), 1, True),
        ((1, 6, 300, 16), (1, 6, 8), (3, 3), 1, False),
        ((1, 4, 10, 8), (2, 9, 200), (1, 3), 1, False),
        ((1, 4, 150, 8), (1, 4, 40), (1, 256), 1, True),
        ((1, 4, 150, 8), (1, 4, 40), (1, 257), 1, False),
        ((1, 20, 40, 8), (1, 2, 4), (3, 3), 9, False),
    ],
    ids=["crop", "more", "far crop", "far more", "wide window", "wider window", "far steps"],
)
def test_what_the_hardware_has_few_bits_for(
    images: Any, results: Any, window: Any, stride: int, walks: bool, target: str
) -> None:
    """Results that are no window of all images: right, in im2col mode or without."""
    x, w = drawn(images, 6), drawn((*window, images[3], 16), 7)
    good = expected(x, w, (*results, 16), stride, 1)
    constants = {"STRIDE": stride, "PAD": 1, **TILES}
    y = poisoned(good.shape, np.float16)
    convolve(x, w, y, **constants)
    np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=2e-3 * np.abs(good).max())
    kernel = convolve.compiled(x, w, y, **constants)
    assert has_walks(kernel) == walks
    assert kernel.index_bits == (32 if walks or stride == 9 else 64)


def test_images_without_elements(target: str) -> None:
    """All that lies beside them is zeros; and results without elements."""
    w = drawn((3, 3, 16, 16), 8)
    y = poisoned((2, 4, 5, 16), np.float16)
    convolve(drawn((0, 4, 5, 16), 9), w, y, PAD=1, **TILES)
    assert (y == 0).all()
    convolve(drawn((2, 4, 5, 16), 9), w, poisoned((2, 0, 5, 16), np.float16), PAD=1, **TILES)


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_of_sums_know_how_far_they_go(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CTA's part of a loop ends in front of the window's end."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x, w = drawn((1, 9, 10, 64), 10), drawn((3, 2, 64, 64), 11)
    good = expected(x, w, (1, 9, 11, 64), 1, 1)
    y = poisoned(good.shape, np.float16)
    there = convolve.demanding(sum_parts=parts)
    there(x, w, y, PAD=1, **TILES)
    np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=2e-3 * np.abs(good).max())
    assert has_walks(there.compiled(x, w, y, PAD=1, **TILES))


def test_clusters_share_the_other_operand(target: str) -> None:
    """CTAs whose rows differ, and a pair of them where there are pairs."""
    x, w = drawn((3, 11, 14, 72), 12), drawn((3, 3, 72, 136), 13)
    good = expected(x, w, (3, 11, 14, 136), 1, 1)
    y = poisoned(good.shape, np.float16)
    there, tiles = convolve.demanding(cluster=2), {"BM": 128, "BN": 128, "BK": 64}
    there.check(x, w, y, PAD=1, **tiles)
    np.testing.assert_allclose(y.astype(float), good, rtol=0, atol=1e-3 * np.abs(good).max())
    kernel = there.compiled(x, w, y, PAD=1, **tiles)
    assert has_walks(kernel)
    paired = decisions(kernel, "CTA pair")
    assert [text.split(",")[0] for text in paired] == (
        ["tcgen05.pair.m256n128k16.f32.f16.f16"] if target == "sm_100a" else []
    )


def test_what_a_call_checks(target: str) -> None:
    """A kernel that somebody loads has no other for what it cannot do."""
    x, w, y = drawn((1, 6, 300, 16), 14), drawn((3, 3, 16, 16), 15), poisoned((1, 6, 8, 16), "f2")
    kernel = convolve.compiled(x[:, :, :9], w, y, PAD=1, **TILES)
    for made in (kernel, replace(kernel, limits=())):
        with pytest.raises(ArgumentError, match=r"shape\[2\] is -293|up to 127 .*found -293"):
            tilec.runtime.facts.check(made, views(x, w, y))


def views(*arrays: np.ndarray) -> dict[str, Any]:
    from tilec.runtime.arrays import describe

    return dict(zip("xwy", map(describe, arrays), strict=True))
