"""Gathers and scatters whose elements neighbour each other: one wide access each, only where it is
right, and right anyway. Rows are named by number, columns by the expressions below."""

from __future__ import annotations

import re

import numpy as np
import pytest
from target_names import MAIN

import tilec
import tilec.language as tl

WIDTH = 32


def from_zero(start, limit):
    c = tl.arange(WIDTH)
    return c, c >= 0


def from_a_multiple(start, limit):
    c = start * 8 + tl.arange(WIDTH)
    return c, c >= 0


def from_anywhere(start, limit):
    c = start + tl.arange(WIDTH)
    return c, c >= 0


def backwards(start, limit):
    c = 31 - tl.arange(WIDTH)
    return c, c >= 0


def two_apart(start, limit):
    c = tl.arange(WIDTH) * 2
    return c, c >= 0


def masked_by_a_multiple(start, limit):
    c = tl.arange(WIDTH)
    return c, c < limit * 8


def masked_from_the_right(start, limit):
    c = tl.arange(WIDTH)
    return c, limit * 8 > c


def masked_anywhere(start, limit):
    c = tl.arange(WIDTH)
    return c, c < limit


def masked_up_to(start, limit):
    c = tl.arange(WIDTH)
    return c, c <= limit * 8


def wrapped(start, limit):
    c = (start * 8 + tl.arange(WIDTH)) & 15
    return c, c >= 0


def wrapped_within(start, limit):
    c = tl.arange(WIDTH) & 3
    return c, c >= 0


def in_turns(start, limit):
    i = tl.arange(WIDTH)
    return i + (i >> 3) * 8, i >= 0


def in_short_turns(start, limit):
    i = tl.arange(WIDTH)
    return i + (i >> 1) * 8, i >= 0


WIDE = {
    from_zero: 16,
    from_a_multiple: 16,
    from_anywhere: 2,
    backwards: 2,
    two_apart: 2,
    masked_by_a_multiple: 16,
    masked_from_the_right: 16,
    masked_anywhere: 2,
    masked_up_to: 2,
    wrapped: 16,
    wrapped_within: 8,
    in_turns: 16,
    in_short_turns: 4,
}
"""Columns, and the bytes of an access to f16 in rows of whole 16 bytes."""


@tilec.kernel(grid=(1,))
def copy_rows(
    x: tl.array,
    rows: tl.array,
    y: tl.array,
    z: tl.array,
    start: int,
    limit: int,
    COLUMNS: tl.const,
):
    """y[:, i] = x[rows, column i], -1 where masked off; z[rows, columns] = what was gathered."""
    numbers = tl.load(rows, 0, 16)[:, None]
    columns, mask = COLUMNS(start, limit)
    mask = mask[None, :] & (numbers >= 0)
    found = tl.gather(x, (numbers, columns[None, :]), mask=mask, other=-1.0)
    tl.store(y, (0, 0), found)
    tl.scatter(z, (numbers, columns[None, :]), found, mask=mask)


COLUMNS = {
    from_zero: lambda i, start: i,
    from_a_multiple: lambda i, start: start * 8 + i,
    from_anywhere: lambda i, start: start + i,
    backwards: lambda i, start: 31 - i,
    two_apart: lambda i, start: 2 * i,
    wrapped: lambda i, start: (start * 8 + i) & 15,
    wrapped_within: lambda i, start: i & 3,
    in_turns: lambda i, start: i + (i >> 3) * 8,
    in_short_turns: lambda i, start: i + (i >> 1) * 8,
}
"""In NumPy; those that are not here count from zero."""
MASKS = {
    masked_by_a_multiple: lambda i, limit: i < limit * 8,
    masked_from_the_right: lambda i, limit: i < limit * 8,
    masked_anywhere: lambda i, limit: i < limit,
    masked_up_to: lambda i, limit: i <= limit * 8,
}


def check(columns, width: int, start: int, limit: int) -> str:
    """A launch on rows of `width` elements against NumPy; gives the PTX."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, width)).astype(np.float16)
    rows = rng.permutation(24)[:16].astype(np.int32) - 2  # some before the first, some behind
    y, z = np.full((16, WIDTH), np.nan, np.float16), np.full_like(x, np.nan)
    arguments = (x, rows, y, z, start, limit)
    kernel = copy_rows.on("emulator")
    kernel(*arguments, COLUMNS=columns)
    i = np.arange(WIDTH)
    at = COLUMNS.get(columns, lambda i, start: i)(i, start)
    mask = MASKS.get(columns, lambda i, limit: i >= 0)(i, limit) & (rows >= 0)[:, None]
    inside = mask & (at >= 0) & (at < width) & (rows < 20)[:, None]
    found = x[np.clip(rows, 0, 19)[:, None], np.clip(at, 0, width - 1)]
    np.testing.assert_array_equal(y, np.where(inside, found, -1))
    written = np.full_like(x, np.nan)
    r, c = np.nonzero(inside)
    written[rows[r], at[c]] = found[r, c]
    np.testing.assert_array_equal(z, written)
    return kernel.compiled(*arguments, COLUMNS=columns).ptx


def narrowest(ptx: str) -> int:
    """Bytes of the narrowest store: y's rows are stored by 16 bytes each."""
    found = re.findall(r"st\.global(?:\.v(\d))?\.b(\d+)", ptx)
    return min(int(count or 1) * int(bits) // 8 for count, bits in found)


@pytest.mark.parametrize("columns", WIDE, ids=lambda fn: fn.__name__)
def test_runs(columns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    ptx = check(columns, 48, 3, 2)
    assert narrowest(ptx) == WIDE[columns]
    check(columns, 48, -1, 0)
    check(columns, 8, 4, 4)
    assert narrowest(check(columns, 47, 1, 3)) == 2  # rows that start anywhere


@pytest.mark.parametrize("target", MAIN)
def test_rows_on_every_target(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    ptx = check(from_a_multiple, 48, 1, 0)
    assert narrowest(ptx) == 16
    assert "ld.global.b16" not in ptx
