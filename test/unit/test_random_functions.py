"""A share of the kernels that `random_functions` writes, by turns for the targets, in check and
late mode."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from random_functions import kernel, numpy_language
from random_functions.cases import drawn, expected_of
from random_functions.run_kernels import received
from random_functions.shrinking import shrunk

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
SEEDS = range(281128, 281128 + 32)


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_they_are_right(seed: int) -> None:
    target, mode = TARGETS[seed % len(TARGETS)], ("check", "late")[seed // 4 % 2]
    found = received(drawn(seed, (target,)), mode, Counter())
    assert found in ("right", "rounds"), found


def test_a_seed_is_a_kernel() -> None:
    one, same, other = (kernel(seed).text() for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_numpy_runs_a_kernel_as_it_is() -> None:
    """Places in front of an array, windows, and what a program of a grid adds to."""
    text = """
import tilec
import tilec.language as tl
@tilec.kernel()
def sums(x: tl.array, y: tl.array):
    m = tl.program_id(0) * 2 - 1
    part = tl.window(x, (m, 1), (2, None))
    tl.store(y, (tl.program_id(0),), tl.sum(tl.load(part, (0, 0), (4, 4))))
    tl.atomic_add(y, 0, 10)
"""
    x, y = np.arange(12.0).reshape(4, 3), np.zeros(2)
    numpy_language.run(text, "sums", [x, y], (2,))
    assert y.tolist() == [0 + 1 + 2 + 20, 4 + 5 + 7 + 8]


def test_what_is_wrong_shrinks() -> None:
    """Down to the one line that matters."""
    case = drawn(3, ("sm_80",))
    wanted = next(line for line in case.kernel.body if line.text.startswith("acc0"))
    text = shrunk(case, lambda one: str(wanted.text in one.text), "True")
    assert [line for line in text.splitlines() if line.startswith("    ")] == [f"    {wanted.text}"]
    assert expected_of(case) is not None
