"""A share of the kernels that `random_functions` writes, by turns for the targets, in check and
late mode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from random_functions import kernel, numpy_language
from random_functions.cases import drawn, expected_of
from random_functions.pairs import drawn_pair, expected_of_pair
from random_functions.placing import OUTSIDE, Lie, harmed, placed
from random_functions.run_kernels import checked, checked_pair
from random_functions.shrinking import shrunk

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
SEEDS = range(281128, 281128 + 32)


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_they_are_right(seed: int) -> None:
    target, mode = TARGETS[seed % len(TARGETS)], ("check", "late")[seed // 4 % 2]
    found = checked(seed, mode, (target,), Counter())
    assert found in ("right", "rounds"), found


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", SEEDS[:8])
def test_pairs_are_right(seed: int) -> None:
    """Two kernels, the second launched before the first has ended."""
    target, mode = TARGETS[1 + seed % 3], ("check", "late")[seed // 4 % 2]
    found = checked_pair(seed, mode, (target,), Counter())
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


def test_numpy_casts_as_the_language_does() -> None:
    """Integers wrap, and truths are no numbers until they are cast."""
    text = """
import tilec
import tilec.language as tl
@tilec.kernel()
def casts(x: tl.array, t: tl.array, y: tl.array):
    a = (tl.load(x, 0, 4) - 1).to(tl.u8)
    b = (a * 3).to(tl.i8)
    c = tl.associative_scan(b, 0, lambda p, q: tl.maximum(p, q), reverse=True)
    tl.store(y, (0, 0), a, dims=(1,))
    tl.store(y, (1, 0), b, dims=(1,))
    tl.store(y, (2, 0), c, dims=(1,))
    tl.store(y, (3, 0), ((a << 7) | (a & 6)).to(tl.u8), dims=(1,))
    tl.store(t, 0, tl.load(t, 0, 4) ^ (a > 1))
"""
    x, t, y = np.arange(4.0), np.array([True, False, True, False]), np.zeros((4, 4))
    numpy_language.run(text, "casts", [x, t, y], (1,))
    assert y.tolist() == [[255, 0, 1, 2], [-3, 0, 3, 6], [6] * 4, [134, 0, 128, 2]]
    assert t.tolist() == [False, False, True, True]


def test_a_pair_has_arrays_in_common() -> None:
    """The second reads what the first has written, or changes what it read."""
    pair = drawn_pair(281128, ("sm_90a",))
    first, second = (case.arguments for case in pair.cases)
    assert pair.shared
    assert all(second[n] is first[m] for n, m in pair.shared.items())
    expected = expected_of_pair(pair)
    assert expected is not None
    assert all(expected[1][n] is expected[0][m] for n, m in pair.shared.items())


def test_what_lies_beside_an_array_is_looked_at() -> None:
    """Rows with gaps, columns that are dense, one array by two names."""
    lies = [Lie(before=2, gap=3), Lie(turned=True), Lie(same_as=0)]
    arguments = [np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(4, 2)]

    def strided(memory: np.ndarray, sizes: Any, strides: Any, offset: int) -> np.ndarray:
        return np.ndarray(sizes, memory.dtype, memory.data, offset * 8, [8 * s for s in strides])

    gaps, turned, again = placed([*arguments, arguments[0]], lies, lambda _, x: x.copy(), strided)
    gap = [OUTSIDE] * 3
    assert gaps.memory.tolist() == [*gap[:2], 0, 1, 2, *gap, 3, 4, 5, *gap, *gap]
    assert turned.memory.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert again.array is gaps.array
    gaps.array[0, 0] = 7
    assert not harmed(gaps, gaps.memory)
    gaps.memory[5] = 7
    assert harmed(gaps, gaps.memory)


def test_what_is_wrong_shrinks() -> None:
    """Down to the one line that matters."""
    case = drawn(3, ("sm_80",))
    wanted = next(line for line in case.kernel.body if line.text.startswith("acc0"))
    text = shrunk(case, lambda one: str(wanted.text in one.text), "True")
    assert [line for line in text.splitlines() if line.startswith("    ")] == [f"    {wanted.text}"]
    assert expected_of(case) is not None
