"""Axes of the grid with one program: what a kernel adds of its number there is nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton

KERNEL = Path(__file__).parent / "kernels" / "planes.ttir"
RNG = np.random.default_rng(29)


@pytest.mark.parametrize("target", MAIN)
def test_one_program_along_an_axis(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernel for one plane, for three, and for one again."""
    monkeypatch.setenv("TILEC_TARGET", target)
    kernel = tilec.triton.kernel(KERNEL.read_text(), KERNEL.name).on("emulator:check")
    for planes in (1, 3, 1):
        n = 208
        x = RNG.integers(-9, 9, (5, n, planes)).astype(np.float32)
        y = np.full_like(x, np.nan)
        kernel[5, planes](x, y, n)
        np.testing.assert_array_equal(y, x * x)


def test_neighbours_move_as_vectors() -> None:
    """Where there is one plane."""
    kernel = tilec.triton.kernel(KERNEL.read_text(), KERNEL.name).on("emulator")
    x, y = (np.zeros((5, 208, 1), np.float32) for _ in range(2))
    assert "16-byte loads" in kernel.report(x, y, 208, grid=(5, 1))
    assert "16-byte loads" not in kernel.report(x, y, 208, grid=(5, 2))
    assert "16-byte loads" in kernel.report(x, y, 208, grid=(5, 1, 1))
