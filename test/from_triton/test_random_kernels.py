"""Random kernels are as NumPy has them; `random_kernels.py` and `random_tiles.py` draw more."""

from __future__ import annotations

from collections import Counter

import pytest
import random_tiles
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
    assert tally["equal"] == 15
    assert tally["accesses raised"]
    assert tally["accesses kept"]


@pytest.mark.parametrize("target", MAIN)
def test_wider_kernels(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops from the end, masks that are multiplied, remainders of program ids."""
    monkeypatch.setenv("TILEC_TARGET", target)
    first = 7000 + 100 * MAIN.index(target)
    tally: Counter[str] = Counter()
    for seed in range(first, first + 12):
        check(seed, tally, wider=True)
    assert tally["equal"] == 12


def test_random_kernels_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and stores by pointers into one array, which are joined, or whose rows interleave."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    tally: Counter[str] = Counter()
    for seed in range(5006, 5011):
        check(seed, tally, near=True)
    assert tally["equal"] == 5
    assert tally["joined"]
    assert tally["apart"]


@pytest.mark.parametrize("target", MAIN)
def test_random_tiles(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    first = 1000 * MAIN.index(target)
    tally: Counter[str] = Counter()
    for seed in range(first, first + 5):
        random_tiles.check(seed, tally)
    assert tally["equal"] == 5
