"""Digits of loops' counters: counted along they are what division gives, and nobody divides."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=3)
def digits(x: tl.array, y: tl.array):
    """y[p, i] = the digits of i, from p on, in the sizes of x, and the last digit of i + 2."""
    first = tl.program_id(0)
    rows, columns = x.shape[0], x.shape[1]
    for i in tl.range(first, y.shape[1]):
        above = i // columns
        for number, digit in enumerate((above // rows, above % rows, i % columns)):
            tl.store(y, (first, i, number), digit.to(y.dtype))
        tl.store(y, (first, i, 3), ((i + 2) % columns).to(y.dtype))


@pytest.mark.parametrize("seed", range(4))
def test_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 5, 2)
    length = int(rng.integers(3, 40))
    x, y = np.empty((rows, columns), np.float32), np.full((3, length, 4), -1, np.int32)
    digits(x, y)
    i = np.arange(length)
    above = i // columns
    all_ = np.stack([above // rows, above % rows, i % columns, (i + 2) % columns], 1)
    for program in range(3):
        expected = np.where(i[:, None] >= program, all_, -1)
        np.testing.assert_array_equal(y[program], expected)


def test_a_loop_without_iterations_divides_by_nothing() -> None:
    """Sizes of 0, which nothing in the loop meets."""
    y = np.empty((3, 0, 4), np.int32)
    digits(np.empty((0, 0), np.float32), y)


def test_nobody_divides_in_a_loop() -> None:
    specs = ["x:f32[?,?]", "y:i32[?,?,4;?,4,1]"]
    ptx = digits.compile(specs, target="sm_90a").ptx
    (body,) = re.findall(r"^\$L__BB0_\d+:(?:(?!^\$L).)*?bra\s+\$L__BB0_\d+;", ptx, re.S | re.M)[-1:]
    assert "st.global" in body
    assert not re.findall(r"(?:div|rem)\.[su]", body)
    # Each program divides once, whichever digit it begins at.
    assert len(re.findall(r"div\.u", ptx)) <= 3
