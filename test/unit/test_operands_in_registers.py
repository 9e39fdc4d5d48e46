"""Operands that registers read where products do: rings wrap, ends are ragged."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16


@tilec.kernel(grid=lambda o: o.shape[0])
def reflections(k: tl.array, w: tl.array, o: tl.array, R: tl.const = 64):
    """o = k - k @ h, `R` rows at a time, and h += o.T @ w: registers want of k what a product takes
    as it is."""
    i = tl.program_id(0)
    h = tl.zeros((128, 128), tl.f32)
    for t in tl.range(0, k.shape[1], R):
        rows = tl.load(k, (i, t, 0), (R, 128))
        new = (rows.to(tl.f32) - tl.dot(rows, h.to(k.dtype))).to(k.dtype)
        tl.store(o, (i, t, 0), new)
        h = tl.dot(new.T, tl.load(w, (i, t, 0), (R, 128)), h)


def expected_reflections(k: np.ndarray, w: np.ndarray, size: int) -> np.ndarray:
    """What `reflections` of so many rows gives, with its roundings."""
    expected, h = np.zeros(k.shape), np.zeros((len(k), 128, 128))
    for t in range(0, k.shape[1], size):
        part = slice(t, t + size)
        one = k[:, part].astype(np.float64)
        new = (one - one @ h.astype(BF16).astype(np.float64)).astype(BF16).astype(np.float64)
        expected[:, part] = new
        h += new.swapaxes(1, 2) @ w[:, part].astype(np.float64)
    return expected


@pytest.mark.parametrize("rows", [40, 64 * 7 + 24])
def test_registers_read_what_products_do(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor copy brings both, in a ring."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(rows)
    k, w = ((rng.standard_normal((3, rows, 128)) / 16).astype(BF16) for _ in range(2))
    o = poisoned(k.shape, BF16)
    there = reflections.on("emulator:check")
    there(k, w, o)
    np.testing.assert_allclose(o.astype(np.float64), expected_reflections(k, w, 64), atol=4e-3)
    compiled = there.compiled(k, w, o)
    assert decisions(compiled, "warp specialisation")[0].startswith("1 loading warp")
    assert decisions(compiled, "asynchronous copy")[0].startswith("by its product's buffer")


def test_one_slot_is_no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where shared memory holds one turn's tiles only, threads copy them."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(7)
    k, w = ((rng.standard_normal((2, 500, 128)) / 16).astype(BF16) for _ in range(2))
    o = poisoned(k.shape, BF16)
    there = reflections.on("emulator:check")
    there(k, w, o, R=192)
    np.testing.assert_allclose(o.astype(np.float64), expected_reflections(k, w, 192), atol=8e-3)
    ptx = there.compiled(k, w, o, R=192).ptx
    assert "cp.async.cg" in ptx
    assert "cp.async.bulk.tensor" not in ptx


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def least_distances(
    x: tl.array, y: tl.array, o: tl.array, ACROSS: tl.const, BM: tl.const, BN: tl.const
):
    """o[i]: the square of the distance of x[i] to the nearest row of y, or column where these lie
    across. Registers want what a product takes, or its transpose."""
    m = tl.program_id(0) * BM
    point, best = tl.load(x, (m, 0), (BM, 64)), tl.full((BM,), tl.inf, tl.f32)
    for n in tl.range(0, y.shape[1 if ACROSS else 0], BN):
        rows = tl.load(y, (0, n), (64, BN)) if ACROSS else tl.load(y, (n, 0), (BN, 64))
        wide = rows.to(tl.f32)
        product = tl.dot(point, rows if ACROSS else rows.T)
        far = tl.sum(wide * wide, 0 if ACROSS else 1)[None, :] - 2.0 * product
        far = tl.where(n + tl.arange(BN)[None, :] < y.shape[1 if ACROSS else 0], far, tl.inf)
        best = tl.minimum(tl.min(far, 1), best)
    own = point.to(tl.f32)
    tl.store(o, m, best + tl.sum(own * own, 1))


@pytest.mark.parametrize(("target", "reads"), [("sm_90a", 2), ("sm_100a", 0)])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("count", [32, 64 * 9 + 8])
def test_a_rotated_product_keeps_what_registers_read(
    count: int, across: bool, target: str, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot is given back behind both: the next copy into it would overtake a warp."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(count)
    x, y = (rng.standard_normal((n, 56)).astype(np.float16) for n in (300, count))
    o = poisoned((300,), np.float32)
    there = least_distances.demanding(num_warps=8).on("emulator:check")
    given = (x, np.ascontiguousarray(y.T) if across else y, o)
    there(*given, ACROSS=across, BM=128, BN=64)
    far = ((x.astype(float)[:, None] - y.astype(float)[None]) ** 2).sum(-1)
    np.testing.assert_allclose(o, far.min(1), atol=1e-3)
    compiled = there.compiled(*given, ACROSS=across, BM=128, BN=64)
    copies = decisions(compiled, "asynchronous copy")
    assert sum(each.startswith("by its product's buffer") for each in copies) == reads
    if reads:
        assert decisions(compiled, "warp specialisation")[0].startswith("1 loading warp")
        assert decisions(compiled, "matrix instructions")[0].startswith("a product under")


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def summed_distances(
    x: tl.array, y: tl.array, o: tl.array, D: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """o[i]: the sum of the distances' squares of x[i] to the rows of y, by tf32."""
    m = tl.program_id(0) * BM
    point, total = tl.load(x, (m, 0), (BM, D)), tl.zeros((BM,), tl.f32)
    for n in tl.range(0, y.shape[0], BN):
        rows = tl.load(y, (n, 0), (BN, D))
        far = tl.sum(rows * rows, 1)[None, :] - 2.0 * tl.dot(point, rows.T, precision="tf32")
        total += tl.sum(far, 1)
    tl.store(o, m, total + tl.sum(point * point, 1))


def test_tiles_leave_two_slots_of_what_registers_read() -> None:
    """The fastest by prediction, 128 x 256, leaves one, and nothing would be loaded ahead."""
    specs = ["x:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]", "o:f32[?]"]
    sizes = {"x": (1717, 96), "y": (5650, 96), "o": (1717,)}
    compiled = summed_distances.compile(specs, {"D": 96}, target="sm_90a", sizes=sizes)
    assert decisions(compiled, "asynchronous copy")[0].startswith("by its product's buffer")
    assert decisions(compiled, "warp specialisation")[0].startswith("1 loading warp")
