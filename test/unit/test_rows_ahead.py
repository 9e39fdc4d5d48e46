"""Loops that load what their next iteration needs first (pass load-ahead), on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel

RNG = np.random.default_rng(30)


def loads_ahead(kernel: CompiledKernel) -> bool:
    """Whether a loop of it loads an iteration ahead."""
    decisions = kernel.report["decisions"]
    return any((d["about"], d["chosen"]) == ("loads", "an iteration ahead") for d in decisions)


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


@pytest.mark.parametrize("rows", [1, 7])
def test_rows_in_turn(rows: int) -> None:
    """The second program has no row, or one fewer than the first."""
    x = RNG.standard_normal((rows, 300), dtype=np.float32)
    y = poisoned(x.shape, np.float32)
    assert loads_ahead(normalise.compiled(x, y, 384))
    normalise.check(x, y, 384)
    normalise(x, y, 384)
    np.testing.assert_allclose(y, x / abs(x).max(1, keepdims=True), 1e-5)


def test_rows_that_the_loop_writes() -> None:
    x = RNG.standard_normal((5, 300), dtype=np.float32)
    expected = x[0]
    assert not loads_ahead(descend.compiled(x, 384))
    descend(x, 384)
    for row in x[1:]:
        expected = 0.5 * expected / abs(expected).max()
        np.testing.assert_allclose(row, expected, 1e-5)
