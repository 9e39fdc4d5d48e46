"""What loops add up to one number (pass carry-partials), on the emulator against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel

RNG = np.random.default_rng(20)
B = 1100
"""Elements of a block: in four warps threads hold vectors of phantoms alone, others in part."""


def carried(kernel: CompiledKernel) -> int:
    """How many values are carried as partial results."""
    decisions = kernel.report["decisions"]
    return sum(each["about"] == "carried through the loop" for each in decisions)


@tilec.kernel(grid=1)
def decayed(x: tl.array, y: tl.array, decay: tl.f32, B: tl.const):
    """Blocks as a tile whose weight falls, one added to each element, those behind the end, too;
    and how many elements are positive."""
    total, positive = tl.zeros((B,), tl.f32), tl.zeros((B,), tl.i32)
    for start in tl.range(0, x.shape[0], B):
        v = tl.load(x, start, B)
        total = total * decay + (v + 1.0)
        positive += tl.where(v > 0, 1, 0)
    tl.store(y, 0, tl.sum(total))
    tl.store(y, 1, tl.sum(positive).to(tl.f32))


@tilec.kernel(grid=1)
def log_sum_exp(x: tl.array, y: tl.array, B: tl.const):
    """log(sum(exp(x))) block by block: the sum is carried in parts, the maximum is needed whole;
    and the least element, which is not."""
    highest, total, least = -tl.inf, 0.0, 3.0
    for start in tl.range(0, x.shape[0], B):
        v = tl.load(x, start, B, padding=-tl.inf)
        higher = tl.maximum(highest, tl.max(v))
        total = total * tl.exp(highest - higher) + 0.5 * tl.sum(tl.exp(v - higher))
        least = tl.minimum(least, tl.min(tl.load(x, start, B, padding=tl.inf)))
        highest = higher
    tl.store(y, 0, highest + tl.log(2 * total))
    tl.store(y, 1, least)


@tilec.kernel(grid=lambda y, BN: tl.cdiv(y.shape[0], BN))
def add_rows(x: tl.array, y: tl.array, BM: tl.const, BN: tl.const):
    """Sums of columns."""
    n = tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for m in tl.range(0, x.shape[0], BM):
        acc += tl.load(x, (m, n), (BM, BN))
    tl.store(y, n, tl.sum(acc, 0))


@pytest.mark.parametrize("size", [0, 700, 3701])
def test_carried_tiles(size: int) -> None:
    """No block, a part of one, and several of which the last is ragged."""
    x, y = RNG.standard_normal(size, dtype=np.float32), poisoned((2,), np.float32)
    kernel = decayed.compiled(x, y, 0.5, B)
    assert carried(kernel) == 2
    decayed.check(x, y, 0.5, B)
    decayed(x, y, 0.5, B)
    blocks = -(-size // B)
    weights = 0.5 ** (blocks - 1 - np.arange(size) // B)
    ones = B * (2 - 2 * 0.5**blocks)
    expected = [(x.astype(np.float64) * weights).sum() + ones, (x > 0).sum()]
    np.testing.assert_allclose(y, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("size", [1, 3701])
def test_carried_numbers(size: int) -> None:
    """A sum that is scaled on both sides, and a minimum that starts below and above the least."""
    x, y = RNG.standard_normal(size, dtype=np.float32) + 2.5, poisoned((2,), np.float32)
    kernel = log_sum_exp.compiled(x, y, B)
    assert carried(kernel) == 2
    log_sum_exp.check(x, y, B)
    log_sum_exp(x, y, B)
    expected = [np.log(np.exp(x.astype(np.float64)).sum()), min(3.0, x.min())]
    np.testing.assert_allclose(y, expected, 1e-5)


def test_carried_columns() -> None:
    """Each thread adds up its rows of a tile, and threads meet behind the loop."""
    x, y = RNG.standard_normal((75, 50), dtype=np.float32), poisoned((50,), np.float32)
    kernel = add_rows.compiled(x, y, 32, 32)
    assert carried(kernel) == 1
    add_rows.check(x, y, 32, 32)
    add_rows(x, y, 32, 32)
    np.testing.assert_allclose(y, x.sum(0, dtype=np.float64), 1e-5, 1e-5)
