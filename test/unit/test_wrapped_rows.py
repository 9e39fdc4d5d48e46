"""Rows that begin anywhere, held wrapped (pass wrap-rows), against NumPy on the emulator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import poisoned
from tilec.examples.softmax import reference as softmaxed
from tilec.examples.softmax import softmax

BF16 = ml_dtypes.bfloat16
WRAPPED = "wrapped, so that vectors are aligned"
"""As reports say it, and not this file's name."""


@tilec.kernel(grid=lambda x: x.shape[0])
def numbered(x: tl.array, y: tl.array, N: tl.const):
    """Each element times its column, and the highest where the row's first was."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), (1, N), padding=-5.0).to(tl.f32)
    columns = tl.arange(N)[None, :].to(tl.f32)
    tl.store(y, (row, 0), v * columns + tl.max(v))


@tilec.kernel(grid=1)
def in_turn(x: tl.array, y: tl.array, z: tl.array, N: tl.const):
    """Rows of two arrays, one after the other in a program; in place."""
    for row in tl.range(0, x.shape[0]):
        a = tl.load(x, (row, 0), N).to(tl.f32) + tl.load(y, (row, 0), N).to(tl.f32)
        tl.store(x, (row, 0), (a - tl.sum(a)).to(x.dtype))
        tl.store(z, (row, 0), a.to(z.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def best(x: tl.array, at: tl.array, N: tl.const):
    """Where each row is highest: nothing else is stored."""
    row = tl.program_id(0)
    tl.store(at, row, tl.argmax(tl.load(x, (row, 0), N, padding=-tl.inf), 0))


@tilec.kernel(grid=lambda x: x.shape[0])
def walked(x: tl.array, y: tl.array, sums: tl.array, B: tl.const):
    """Along rows: sums of the elements times their columns, tiles that are carried; then each less
    the sum, and where it was, in place."""
    row = tl.program_id(0)
    total, highest = tl.zeros((B,), tl.f32), -tl.inf
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B, padding=-2.0).to(tl.f32)
        columns = start + tl.arange(B)
        highest = tl.maximum(highest, tl.max(v))
        total += tl.where(columns < x.shape[1], v * (columns % 7).to(tl.f32), 0.0)
    tl.store(sums, row, tl.sum(total) + highest)
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        places = (start + tl.arange(B)) % 5
        tl.store(x, (row, start), (v - highest).to(x.dtype))
        tl.store(y, (row, start), (v + places.to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=lambda x, B: (x.shape[0], tl.cdiv(x.shape[1], B)))
def in_parts(x: tl.array, y: tl.array, B: tl.const):
    """Parts of rows, a program each."""
    row, start = tl.program_id(0), tl.program_id(1) * B
    columns = (start + tl.arange(B)).to(tl.f32)
    tl.store(y, (row, start), (tl.load(x, (row, start), B).to(tl.f32) + columns).to(y.dtype))


@tilec.kernel(grid=1)
def added_up(x: tl.array, y: tl.array, N: tl.const):
    """Sums of columns, of which each row begins elsewhere."""
    total = tl.zeros((N,), tl.f32)
    for row in tl.range(0, x.shape[0]):
        total += tl.load(x, (row, 0), N).to(tl.f32)
    tl.store(y, (0, 0), total.to(y.dtype))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also rows that had better not be wrapped, being short, are: emulated in less time."""
    monkeypatch.setattr("tilec.passes.wrap_rows.saves_slots", lambda *_: True)


def rows(number: int, columns: int, dtype: Any, width: int | None = None) -> np.ndarray:
    """Random rows, of an array that is `width` columns wide."""
    drawn = np.random.default_rng([columns, number]).standard_normal((number, width or columns))
    return drawn.astype(dtype)[:, :columns]


def report(kernel: Kernel, *arguments: Any, **constants: Any) -> str:
    """What was decided."""
    return str(kernel.report(*arguments, **constants))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 129, 517, 1023])
def test_softmax(columns: int, dtype: Any) -> None:
    """Nine rows begin at each multiple of an element; some end inside their first vector."""
    x, y = rows(9, columns, dtype), poisoned((9, columns), dtype)
    N = -(-columns // 128) * 128
    softmax.check(x, y, N=N)
    error = {2: 1e-2, 4: 1e-6, 8: 1e-6}[x.itemsize]
    expected = softmaxed(x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=0, atol=error)
    # One column of all rows is a row to memory: nothing begins anywhere in it.
    assert WRAPPED in report(softmax, x, y, N=N) or columns % 16 == 0 or columns == 1


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("columns", "width"), [(300, 307), (512, 515), (700, 701)])
def test_columns_and_tiles_that_rows_outgrow(columns: int, width: int) -> None:
    """Rows of wider arrays; where they are as long as the tile or longer, elements wrap round."""
    x, y = rows(5, columns, np.float16, width), poisoned((5, width), np.float32)[:, :columns]
    numbered.check(x, y, N=512)
    inside = x[:, :512].astype(np.float64)
    highest = inside.max(1, keepdims=True) if columns >= 512 else np.maximum(inside.max(1), -5)
    expected = inside * np.arange(inside.shape[1]) + np.reshape(highest, (5, 1))
    np.testing.assert_allclose(y[:, :512], expected, rtol=1e-4, atol=1e-3)
    assert np.isnan(y[:, 512:]).all()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("tile", [512, 352])
def test_arrays_that_lie_otherwise_and_rows_in_a_loop(tile: int) -> None:
    """The shift is x's; rows of y and z have other strides, z's elements another size. Rows are
    shorter than the tile or longer, whose last threads hold nothing."""
    x, y = rows(7, 389, np.float16), rows(7, 389, np.float16, 390)
    z = poisoned((7, 395), np.float32)[:, :389]
    before, a = x.astype(np.float64), x.astype(np.float64) + y
    assert WRAPPED in report(in_turn, x, y, z, N=tile)
    in_turn.check(x, y, z, N=tile)
    inside, outside = np.s_[:, :tile], np.s_[:, tile:]
    np.testing.assert_allclose(z[inside], a[inside], rtol=0, atol=1e-2)
    assert np.isnan(z[outside]).all()
    expected = a[inside] - a[inside].sum(1, keepdims=True)
    np.testing.assert_allclose(x[inside].astype(np.float64), expected, rtol=0, atol=0.1)
    np.testing.assert_array_equal(x[outside], before[outside])


@pytest.mark.usefixtures("always")
def test_a_row_that_is_only_reduced() -> None:
    """The number of a column is that of the element, wherever it is held."""
    x, at = rows(6, 1003, np.float32), poisoned((6,), np.int32)
    best.check(x, at, N=1024)
    np.testing.assert_array_equal(at, x.argmax(1))
    assert WRAPPED in report(best, x, at, N=1024)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("begin", [1, 3])
def test_an_array_that_begins_anywhere(begin: int) -> None:
    """The shift is that of addresses, not of columns: the array itself is not aligned."""
    flat = rows(1, 5 * 261 + begin, np.float16)[0]
    x, y = flat[begin:].reshape(5, 261), poisoned((5, 261), np.float16)
    softmax.check(x, y, N=384)
    expected = softmaxed(x.astype(np.float64))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=0, atol=1e-2)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", [np.float32, BF16])
@pytest.mark.parametrize(
    ("columns", "width"), [(5, 7), (255, 257), (257, 259), (771, 771), (1000, 1021), (768, 769)]
)
def test_loops_along_rows(columns: int, width: int, dtype: Any) -> None:
    """Each part of a row wraps for itself, as far as the row begins behind an aligned address; rows
    that end in, at and in front of a tile's first columns; y's begin otherwise."""
    x, y = rows(6, columns, dtype, width), poisoned((6, width + 2), np.float32)[:, :columns]
    before, sums = x.astype(np.float64), poisoned((6,), np.float32)
    walked.check(x, y, sums, B=256)
    at, padded = np.arange(columns), -2.0 if columns % 256 else -np.inf
    highest = np.maximum(before.max(1), padded)
    np.testing.assert_allclose(sums, (before * (at % 7)).sum(1) + highest, rtol=1e-5, atol=1e-3)
    error = 1e-5 if dtype == np.float32 else 5e-2
    np.testing.assert_allclose(y, before + at % 5, rtol=0, atol=1e-5)
    found = x.astype(np.float64)
    np.testing.assert_allclose(found, before - highest[:, None], rtol=0, atol=error)
    assert WRAPPED in report(walked, x, y, sums, B=256)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("columns", "width"), [(3, 5), (129, 131), (391, 391), (384, 385)])
def test_parts_of_rows(columns: int, width: int) -> None:
    """A program begins at its own part; what is beside the columns stays as it was."""
    x, y = rows(5, columns, np.float16, width), poisoned((5, width), np.float16)
    in_parts.check(x, y[:, :columns], B=128)
    expected = (x.astype(np.float32) + np.arange(columns)).astype(np.float16)
    np.testing.assert_array_equal(y[:, :columns], expected)
    assert np.isnan(y[:, columns:].astype(np.float32)).all()
    assert WRAPPED in report(in_parts, x, y[:, :columns], B=128)


@pytest.mark.usefixtures("always")
def test_rows_that_meet_stay_where_they_are() -> None:
    """What a loop over rows carries would be held as each of them is."""
    x, y = rows(4, 301, np.float32), poisoned((1, 301), np.float32)
    added_up.check(x, y, N=384)
    np.testing.assert_allclose(y[0], x.sum(0), rtol=1e-5, atol=1e-5)
    assert WRAPPED not in report(added_up, x, y, N=384)


@pytest.mark.parametrize(("columns", "tile", "chosen"), [(515, 640, False), (8209, 8320, True)])
def test_short_rows_stay_where_they_are(columns: int, tile: int, chosen: bool) -> None:
    """Edges of vectors cost a warp more than accesses of 2 bytes, if it has few of them."""

    @tilec.kernel(grid=lambda x: x.shape[0])
    def negated(x: tl.array, y: tl.array, N: tl.const):
        row = tl.program_id(0)
        v = tl.load(x, (row, 0), N)
        tl.store(y, (row, 0), (tl.max(v) - v).to(y.dtype))

    x, y = rows(3, columns, np.float16), poisoned((3, columns), np.float16)
    negated.check(x, y, N=tile)
    np.testing.assert_array_equal(y, x.max(1, keepdims=True) - x)
    assert (WRAPPED in report(negated, x, y, N=tile)) == chosen
