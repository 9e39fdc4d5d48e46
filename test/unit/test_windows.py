"""Windows: parts of arrays that programs compute, of any size, with other programs' around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
LARGE = 2**31 + 5


@tilec.kernel(grid=lambda ends, LONGEST, BM: (ends.shape[0], tl.cdiv(LONGEST, BM)))
def grouped(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    ends: tl.array,
    LONGEST: tl.const,
    BM: tl.const = 64,
    BN: tl.const = 64,
    BK: tl.const = 32,
):
    """Rows of each group times a matrix of its own, in all columns of which there are BN."""
    g, m = tl.program_id(0), tl.program_id(1) * BM
    first = tl.assume(tl.load(ends, g - 1, ()), min=0)
    size = tl.load(ends, g, ()) - first
    rows, results = (tl.window(x, (first, 0), (size, None)) for x in (a, c))
    if m < size:
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, a.shape[1], BK):
            acc = tl.dot(tl.load(rows, (m, k), (BM, BK)), tl.load(b, (g, k, 0), (BK, BN)), acc)
        tl.store(results, (m, 0), acc.to(c.dtype))


@tilec.kernel(grid=lambda ends: ends.shape[0])
def weight_gradients(
    x: tl.array, dy: tl.array, dw: tl.array, ends: tl.array, M: tl.const = 64, BK: tl.const = 32
):
    """x^T dy of each group's rows, which are summed over: what lies behind them must not count."""
    g = tl.program_id(0)
    first = tl.load(ends, g - 1, ())
    size = tl.load(ends, g, ()) - first
    xs, dys = (tl.window(each, (first, 0), (size, None)) for each in (x, dy))
    acc = tl.zeros((M, M), tl.f32)
    for k in tl.range(0, size, BK):
        acc = tl.dot(tl.load(xs, (k, 0), (BK, M)).T, tl.load(dys, (k, 0), (BK, M)), acc)
    tl.store(dw, (g, 0, 0), acc, dims=(1, 2))


@tilec.kernel(grid=lambda ends: ends.shape[0])
def normalize_in_place(x: tl.array, ends: tl.array, N: tl.const = 64):
    """Each segment divided by its sum, while other programs write the segments beside it."""
    g = tl.program_id(0)
    first = tl.load(ends, g - 1, ())
    segment = tl.window(x, first, tl.load(ends, g, ()) - first)
    total = 0.0
    for i in tl.range(0, segment.shape[0], N):
        total = total + tl.sum(tl.load(segment, i, N))
    for i in tl.range(0, segment.shape[0], N):
        tl.store(segment, i, tl.load(segment, i, N) / total)


@tilec.kernel(grid=1)
def nested(
    x: tl.array,
    y: tl.array,
    at: tl.array,
    padding_of: tl.const = -1,
    R: tl.const = 16,
    C: tl.const = 8,
):
    """A tile of a window's window; `at`: start and size of both along both axes, and the tile's."""
    r, rows, c, columns, inner, most, i, j = (tl.load(at, n, ()) for n in range(8))
    outside = tl.window(x, (r, c), (rows, columns))
    inside = tl.window(outside, (inner, 0), (most, None))
    tl.store(y, (0, 0), tl.load(inside, (i, j), (R, C), padding=padding_of))
    tl.store(y, (R, 0), tl.load(inside, (j, i), (C, R), dims=(1, 0), padding=padding_of).T)
    tl.store(y, (2 * R, 0), tl.load(inside, (i, j), (R,), dims=0, padding=padding_of)[:, None])


@tilec.kernel(grid=1)
def indexed(x: tl.array, y: tl.array, indices: tl.array, start: int, size: int, N: tl.const = 32):
    """Gathers, scatters and counts within a window."""
    window = tl.window(x, start, size)
    numbers = tl.load(indices, 0, N)
    tl.store(y, 0, tl.gather(window, numbers, other=-1))
    tl.atomic_add(window, numbers, 100, mask=tl.arange(N) % 2 == 0)
    tl.scatter(window, numbers.to(tl.i32) + 1000, 7)


@tilec.kernel(grid=1)
def from_on(x: tl.array, y: tl.array, start: int, N: tl.const = 32):
    """What an array has from a place on."""
    rest = tl.window(x, (start,))
    tl.store(y, 0, tl.load(rest, -3, N, padding=9))
    tl.store(y, N, tl.zeros((1,), tl.i32) + rest.shape[0].to(tl.i32))


def segments(rng: np.random.Generator, sizes: list[int]) -> np.ndarray:
    return np.cumsum(sizes, dtype=np.int32)


def in_window(x: np.ndarray, start: int, size: int) -> np.ndarray:
    """Whether positions of an axis of x lie inside a window."""
    positions = np.arange(len(x))
    return (positions >= start) & (positions < start + size)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_groups(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(3)
    sizes, k = [5, 0, 130, 1, 64], 200
    ends = segments(rng, sizes)
    a = rng.standard_normal((sum(sizes), k)).astype(np.float16)
    a[7] = np.nan  # of one group alone
    b = rng.standard_normal((len(sizes), k, 64)).astype(np.float16)
    c = np.full((sum(sizes), 64), 77, np.float32)
    grouped.check(a, b, c, ends, LONGEST=max(sizes))
    starts = [0, *ends[:-1]]
    parts = [
        a[first:end].astype(float) @ matrix.astype(float)
        for first, end, matrix in zip(starts, ends, b, strict=True)
    ]
    np.testing.assert_allclose(c, np.concatenate(parts), atol=1e-3)
    report = grouped.on("emulator").compiled(a, b, c, ends, LONGEST=130).report["decisions"]
    assert not [entry for entry in report if entry["about"] == "window"], "masked in vain"
    copies = [entry["chosen"] for entry in report if entry["about"] == "asynchronous copy"]
    assert copies == ["cp.async of 16 bytes" if target == "sm_80" else "TMA"] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_summed_over_is_padded(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(4)
    sizes = [40, 0, 97, 3]
    ends = segments(rng, sizes)
    x, dy = rng.standard_normal((2, sum(sizes), 64)).astype(np.float16)
    x[41] = np.inf  # the third group's first rows, behind the first's last
    dw = np.full((len(sizes), 64, 64), 77, np.float32)
    weight_gradients.check(x, dy, dw, ends)
    for g, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if g != 2:
            expected = x[first:end].T.astype(float) @ dy[first:end].astype(float)
            np.testing.assert_allclose(dw[g], expected, atol=1e-3)
    report = weight_gradients.on("emulator").compiled(x, dy, dw, ends).report["decisions"]
    assert [entry["chosen"] for entry in report if entry["about"] == "window"] == [
        "masked behind the load"
    ] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_in_place_beside_others(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(5)
    sizes = [1, 100, 0, 63, 65, 2]
    x = rng.random(sum(sizes)).astype(np.float32) + 0.5
    parts = np.split(x.astype(float), np.cumsum(sizes)[:-1])
    normalize_in_place.check(x, segments(rng, sizes))
    np.testing.assert_allclose(x, np.concatenate([part / part.sum() for part in parts]), rtol=1e-5)


@pytest.mark.parametrize(
    "at",
    [
        (3, 20, 2, 30, 4, 9, 0, 0),
        (3, 20, 2, 30, 4, 100, -2, 5),
        (-4, 12, 30, 100, 1, 50, 2, -3),
        (10, 0, 0, 5, 0, 5, 0, 0),
        (39, 5, 33, 9, 0, 5, -5, -5),
        (0, LARGE, 0, LARGE, 0, LARGE, 30, 28),
        (5, 2**40, 3, -7, 2, 2**33, 1, 1),
        (2**32 + 3, 8, 0, 8, 0, 8, 0, 0),
        (2**32 + 3, 2**40, 0, 8, -(2**32), 2**34, -3, 0),
        (1, 2**63 - 1, 1, 2**63 - 1, 1, 2**63 - 1, -1, -1),
        (7 - 2**32, 4, 0, 8, 0, 2**34, 2**32 - 5, 0),
    ],
)
def test_windows_of_windows(at: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 1000, (41, 37)).astype(np.int32)
    y = np.full((48, 16), 77, np.int32)
    nested.check(x, y, np.array(at, np.int64))
    r, rows, c, columns, inner, most, i, j = at
    ends = (r, rows), (inner, most), (c, columns)
    for row in range(16):
        for column in range(8):
            assert y[row, column] == element(x, *ends, i + row, j + column)
            assert y[16 + row, column] == element(x, *ends, j + row, i + column)
        assert y[32 + row, 0] == element(x, *ends, i + row, j)


def element(
    x: np.ndarray,
    outer: tuple[int, int],
    inner: tuple[int, int],
    columns: tuple[int, int],
    row: int,
    column: int,
) -> int:
    """An element of a window's window by its definition; -1 outside."""
    inside = 0 <= row < inner[1] and 0 <= row + inner[0] < outer[1] and 0 <= column < columns[1]
    at = row + inner[0] + outer[0], column + columns[0]
    inside = inside and 0 <= at[0] < x.shape[0] and 0 <= at[1] < x.shape[1]
    return int(x[at]) if inside else -1


@pytest.mark.parametrize(("start", "size"), [(5, 20), (-3, 10), (90, 50), (0, 0), (2**33, 4)])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_indices(start: int, size: int, kind: Any) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 50, 100).astype(np.int32)
    numbers = rng.permutation(60)[:32].astype(kind) - kind(0 if kind == np.uint8 else 15)
    before, y = x.astype(int), np.full(32, 77, np.int32)
    indexed.check(x, y, numbers, start, size)
    expected, after = np.full(32, -1), before.copy()
    for n, number in enumerate(numbers.astype(int)):
        at = number + start
        if 0 <= number < size and 0 <= at < len(x):
            expected[n] = before[at]
            after[at] += 100 * (n % 2 == 0)
    assert np.array_equal(y, expected)
    assert np.array_equal(x, after)


@pytest.mark.parametrize("start", [0, 1, 90, 100, 140, -7])
def test_up_to_the_array_s_end(start: int) -> None:
    x, y = np.arange(100, dtype=np.int32), np.zeros(33, np.int32)
    from_on.check(x, y, start)
    places = start - 3 + np.arange(32)
    seen = (np.arange(32) >= 3) & (places >= 0) & (places < 100)
    assert np.array_equal(y[:32], np.where(seen, places, 9))
    assert y[32] == 100 - start


@tilec.kernel(grid=1, num_warps=2)
def by_hand(x: tl.array, y: tl.array, z: tl.array, start: int, size: int):
    """A kernel whose tiles have layouts from the beginning."""
    window, own = tl.window(x, (start, 1), (size, None)), tl.window(y, start, size)
    tile = gpu.load(window, (-1, 0), (32, 16), gpu.blocked((32, 16), warps=2))
    gpu.sync()
    tl.store(tl.window(z, (2, 0), (size, None)), (0, 0), tile * 2)
    tl.store(own, -1, gpu.load(own, -1, (64,), gpu.blocked((64,), warps=2)) + 1)


def test_kernels_by_hand() -> None:
    x = np.random.default_rng(8).standard_normal((40, 15)).astype(np.float32)
    y, z = np.zeros(80, np.float32), np.full((40, 16), 77, np.float32)
    by_hand.check(x, y, z, 7, 20)
    assert np.array_equal(np.flatnonzero(y == 1), np.arange(7, 27))
    expected = np.full((40, 16), 77, np.float32)
    expected[2:22] = 0
    expected[3:22, :14] = 2 * x[7:26, 1:]
    assert np.array_equal(z, expected)


@tilec.kernel(grid=1)
def sizes_are_constants(x: tl.array, y: tl.array):
    w = tl.window(x, (0, 8), (4, 2))
    tl.store(y, 0, tl.zeros((w.shape[0], w.shape[1]), tl.f32).reshape(8))


def test_sizes_that_are_known_are_constants() -> None:
    y = np.ones(50, np.float32)
    sizes_are_constants.check(np.ones((5, 20), np.float32), y)
    assert y.sum() == 42


def no_array(x: tl.array, n: tl.i32):
    tl.window(n, 0, 4)


def too_few(x: tl.array, n: tl.i32):
    tl.window(x, 0, (4, 4))


def too_many_sizes(x: tl.array, n: tl.i32):
    tl.window(x, (0, 0), (4, 4, 4))


def negative(x: tl.array, n: tl.i32):
    tl.window(x, (0, 0), (4, -4))


def half(x: tl.array, n: tl.i32):
    tl.window(x, (0, 0.5), (4, 4))


def a_tile(x: tl.array, n: tl.i32):
    tl.window(x, (0, 0), (4, tl.arange(4)))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (no_array, "window takes an array, found"),
        (too_few, "expected one of the offsets per dimension of 'x' (2), found 1"),
        (too_many_sizes, "expected one of the sizes per dimension of 'x' (2), found 3"),
        (negative, "a size must be 0 or more, found -4"),
        (half, "an offset must be an integer scalar"),
        (a_tile, "a size must be an integer scalar"),
    ],
)
def test_mistakes(fn: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message.replace("(", r"\(").replace(")", r"\)")):
        tilec.kernel(grid=1)(fn).check(np.ones((4, 4), np.float32), 3)
