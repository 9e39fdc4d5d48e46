"""Vectors that may straddle the ends of arrays: tiles in one place of several come together."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

TARGETS = ["sm_80", "sm_90a", "sm_100a"]


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def mixed(x: tl.array, z: tl.array, w: tl.array, y: tl.array, B: tl.const = 256):
    """y = x z + w, whatever lies behind their ends 1."""
    i = tl.program_id(0) * B
    product = tl.load(x, i, B, padding=1) * tl.load(z, i, B, padding=1)
    tl.store(y, i, (product + tl.load(w, i, B, padding=1)).to(y.dtype))


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def written_between(x: tl.array, y: tl.array, B: tl.const = 256):
    """x += 1, then y += x."""
    i = tl.program_id(0) * B
    tl.store(x, i, tl.load(x, i, B) + 1)
    tl.store(y, i, tl.load(y, i, B) + tl.load(x, i, B))


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_that_end_at_different_places(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng, sizes = np.random.default_rng(4), (1021, 1277, 1301)
    x, z, w = (rng.integers(-9, 9, size).astype(ml_dtypes.bfloat16) for size in sizes)
    y = poisoned((1301,), np.float32)
    mixed.check(x, z, w, y)
    wide = [np.append(a.astype(np.float64), np.ones(1301 - len(a))) for a in (x, z, w)]
    np.testing.assert_array_equal(y, wide[0] * wide[1] + wide[2])


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def weighted(x: tl.array, z: tl.array, w: tl.array, y: tl.array, B: tl.const = 256):
    """y = x z + w, with the same z in all programs: their warps load for the next one."""
    i = tl.program_id(0) * B
    product = tl.load(x, i, B, padding=1) * tl.load(z, 0, B, padding=1)
    tl.store(y, i, (product + tl.load(w, i, B, padding=1)).to(y.dtype))


def test_all_loads_are_issued_before_one_is_waited_for() -> None:
    """Those of a warp's first program, and in the loop those of its next one."""
    specs, each = [f"{name}:bf16[?]" for name in "xzwy"], 1 + 8
    for kernel, ends in ((mixed, [0, 3 * each]), (weighted, [each, 3 * each, 5 * each])):
        ptx = kernel.compile(specs, target="sm_90a").ptx
        loads = [m.start() for m in re.finditer(r"ld\.global", ptx)]
        assert len(loads) == ends[-1]
        for first, end in itertools.pairwise(ends):
            text = ptx[loads[first] : loads[end - 1]]
            # What a load that is not done leaves in its register was there before: a constant.
            constants = set(re.findall(r"mov\.b32 \t(%r\d+), \d+;", ptx))
            moves = re.findall(r"mov\.b32 \t%r\d+, (\S+);", text)
            assert {source for source in moves if source[0] == "%"} <= constants
            between = re.findall(r"\n\s*(?:@%p\d+ )?(cvt|bra|fma|mul)\b", text)
            # Past the whole vectors, into the other side of the branch.
            assert between == ["bra"]


def test_what_is_written_between_is_read_behind() -> None:
    x, y = (np.random.default_rng(n).standard_normal(333).astype(np.float16) for n in (1, 2))
    old_x, old_y = x.copy(), y.copy()
    written_between.check(x, y)
    np.testing.assert_array_equal(x, old_x + np.float16(1))
    np.testing.assert_array_equal(y, old_y + x)
