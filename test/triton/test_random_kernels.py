"""Random kernels of pointers and masks are as NumPy has them; `random_kernels.py` draws more."""

from __future__ import annotations

from collections import Counter

import pytest
from random_kernels import check
from target_names import MAIN

TELLING = (46, 93, 208)
"""Kernels that notice a wrap taken away where it is needed, a bound by one off, and a coordinate
that is negative in some programs."""


@pytest.mark.parametrize("target", MAIN)
def test_random_kernels(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    first = 1000 * MAIN.index(target)
    tally: Counter[str] = Counter()
    for seed in (*TELLING, *range(first, first + 12)):
        check(seed, tally)
    assert tally["equal"] >= 10
    assert tally["accesses raised"]
    assert tally["accesses kept"]
