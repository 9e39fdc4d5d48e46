"""Loops that load what their next iteration needs first (pass load-ahead), on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel

RNG = np.random.default_rng(30)


def loads_ahead(kernel: CompiledKernel) -> list[str]:
    """How far each loop of it that loads ahead does so."""
    decisions = kernel.report["decisions"]
    return [d["chosen"] for d in decisions if d["about"] == "loads" and "ahead" in d["chosen"]]


@tilec.kernel(grid=2, num_warps=2)
def normalise(x: tl.array, y: tl.array, N: tl.const):
    """y = x / max(|x|) of each row; two programs walk over the rows."""
    for row in tl.range(tl.program_id(0), x.shape[0], 2):
        v = tl.load(x, (row, 0), N)
        tl.store(y, (row, 0), v / tl.max(tl.abs(v)))


@tilec.kernel(grid=1, num_warps=2)
def descend(x: tl.array, N: tl.const):
    """Each row becomes half of the normalised row before it."""
    for row in tl.range(0, x.shape[0] - 1):
        v = tl.load(x, (row, 0), N)
        tl.store(x, (row + 1, 0), 0.5 * v / tl.max(tl.abs(v)))


@pytest.mark.parametrize(
    ("rows", "tile", "ahead"), [(1, 640, "an iteration"), (7, 640, "an iteration"), (19, 384, "2")]
)
def test_rows_in_turn(rows: int, tile: int, ahead: str) -> None:
    """The second program has no row, or one fewer than the first; of little rows several come at a
    time, then one by one."""
    x = RNG.standard_normal((rows, 300), dtype=np.float32)
    y = poisoned(x.shape, np.float32)
    (found,) = loads_ahead(normalise.compiled(x, y, tile))
    assert found.startswith(ahead)
    normalise.check(x, y, tile)
    normalise(x, y, tile)
    np.testing.assert_allclose(y, x / abs(x).max(1, keepdims=True), 1e-5)


def test_rows_that_the_loop_writes() -> None:
    x = RNG.standard_normal((5, 300), dtype=np.float32)
    expected = x[0]
    assert not loads_ahead(descend.compiled(x, 384))
    descend(x, 384)
    for row in x[1:]:
        expected = 0.5 * expected / abs(expected).max()
        np.testing.assert_allclose(row, expected, 1e-5)


@tilec.kernel(grid=1, num_warps=8)
def recur(x: tl.array, share: tl.array, y: tl.array):
    """Adds a share of what a state gives for each row to the state, as delta rules do."""
    state = tl.zeros((8, 128), tl.f32)
    for step in tl.range(0, x.shape[0]):
        row = tl.load(x, (step, 0), (1, 128)).to(tl.f32)
        given = tl.sum(state * row, 1)
        state += row * (1 - given)[:, None] * tl.load(share, step, ()).to(tl.f32)
        tl.store(y, (step, 0), given)


def test_numbers_come_with_the_rows() -> None:
    """A number of 16 bits that no load follows comes ahead as rows do; fewer registers a thread
    leave room for others where lanes meet in each iteration."""
    x = (RNG.standard_normal((21, 128)) / 8).astype(np.float16)
    share, y = RNG.random(21).astype(np.float16), poisoned((21, 8), np.float32)
    (found,) = loads_ahead(recur.compiled(x, share, y))
    assert found == "8 iterations ahead"
    recur.check(x, share, y)
    recur(x, share, y)
    state = np.zeros(128)
    for row, part, given in zip(x.astype(np.float64), share.astype(np.float64), y, strict=True):
        np.testing.assert_allclose(given, state @ row, 1e-4, 1e-5)
        state += row * (1 - state @ row) * part
