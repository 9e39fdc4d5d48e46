"""Elementwise tiles of `tl.auto` sides: no wider than what programs cover, and right there."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.covered_sides import covering


@tilec.kernel(grid=lambda x, B: (x.shape[0], tl.cdiv(x.shape[1], B)))
def double_rows(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    row, i = tl.program_id(0), tl.program_id(1) * B
    tl.store(y, (row, i), 2 * tl.load(x, (row, i), B))


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[1], BN), tl.cdiv(x.shape[0], BM)))
def double_tiles(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    at = tl.program_id(1) * BM, tl.program_id(0) * BN
    tl.store(y, at, 2 * tl.load(x, at, (BM, BN)))


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((5, 115), {"B": 128}),
        ((3, 2), {"B": 2}),
        ((7, 1100), {"B": 576}),  # in two pieces, as by the usual 1024
        ((2, 100003), {"B": 1024}),
    ],
)
def test_rows_take_tiles_of_their_pieces(shape: tuple[int, int], tile: dict[str, int]) -> None:
    check(double_rows, shape, tile)


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((400, 300), {"BM": 2, "BN": 320}),
        ((400, 18), {"BM": 32, "BN": 32}),
        ((3, 700), {"BM": 2, "BN": 352}),
        ((2, 5), {"BM": 2, "BN": 8}),
        ((5000, 1), {"BM": 1024, "BN": 1}),
        ((1, 5000), {"BM": 1, "BN": 1024}),
        ((1, 1), {"BM": 1, "BN": 1}),
    ],
)
def test_what_one_side_leaves_goes_to_the_other(
    shape: tuple[int, int], tile: dict[str, int]
) -> None:
    check(double_tiles, shape, tile)


def check(kernel: tilec.Kernel, shape: tuple[int, int], tile: dict[str, int]) -> None:
    x = np.random.default_rng().standard_normal(shape, dtype=np.float32)
    y = np.full(shape, np.nan, np.float32)
    there = kernel.on("emulator:check")
    there(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    found = there.compiled(x, y).constants
    assert {name: found[name] for name in tile} == tile


def test_steps_down_columns_are_no_longer_than_twice_the_mean() -> None:
    usual = {"BM": 32, "BN": 64}
    assert covering(usual, {"BM": 8, "BN": 90}, ["BM"]) == {"BM": 16, "BN": 64}
    assert covering(usual, {"BM": 24, "BN": 30}, ["BM"]) == {"BM": 32, "BN": 32}
    assert covering(usual, {"BM": 198, "BN": 90}, ["BM"]) == usual


def test_short_rows_that_loops_walk_along_leave_room_for_others() -> None:
    usual = {"BM": 1, "BK": 2048}
    assert covering(usual, {"BM": 780, "BK": 192}, ["BK"]) == {"BM": 8, "BK": 256}
    assert covering(usual, {"BM": 780, "BK": 1024}, ["BK"]) == {"BM": 2, "BK": 1024}
    for length in (1025, 3000):
        assert covering(usual, {"BM": 780, "BK": length}, ["BK"]) == usual


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def sum_rows(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BK: tl.const = tl.auto):
    m = tl.program_id(0) * BM
    total = tl.zeros((BM,), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        total += tl.sum(tl.load(x, (m, k), (BM, BK)), axis=1)
    tl.store(y, m, total)


@pytest.mark.parametrize("rows", [1, 70])
def test_rows_of_nothing_have_tiles(rows: int) -> None:
    y = np.full(rows, np.nan, np.float32)
    sum_rows.on("emulator:check")(np.zeros((rows, 0), np.float32), y)
    assert not y.any()


def test_tiles_cover_in_as_many_programs_and_span_no_more_elements() -> None:
    rng = np.random.default_rng()
    for _ in range(500):
        usual = {"BM": 1 << int(rng.integers(0, 8)), "BN": 1 << int(rng.integers(5, 9))}
        lengths = {name: int(rng.integers(1, 2000)) for name in usual}
        found = covering(usual, lengths)
        assert all(
            -(-lengths[name] // found[name]) <= -(-lengths[name] // side)
            for name, side in usual.items()
        )
        # A piece is rounded up, to a power of two at most.
        assert np.prod(list(found.values())) <= np.prod(list(usual.values()))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def take_every(x: tl.array, y: tl.array, STEP: tl.const, B: tl.const = tl.auto):
    n, row = tl.program_id(0) * B, tl.program_id(1)
    tl.store(y, (row, n), tl.gather(x, (row, (n + tl.arange(B)) * STEP)))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def take_colour(x: tl.array, y: tl.array, colour: tl.i32, B: tl.const = tl.auto):
    n, row = tl.program_id(0) * B, tl.program_id(1)
    tl.store(y, (row, n), tl.load(x, (row, n, colour), (B,), dims=(1,)))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def copy_rows(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    n, row = tl.program_id(0) * B, tl.program_id(1)
    tl.store(y, (row, n), tl.load(x, (row, n), B))


@pytest.mark.parametrize("columns", [4096, 4099])
def test_elements_that_come_one_by_one_take_a_word_each(columns: int) -> None:
    """Of bytes 1024 make a tile then, as of f32, else 4096."""
    rng = np.random.default_rng()
    x = rng.integers(0, 256, (2, 2 * columns, 3), dtype=np.uint8)
    y = np.zeros((2, columns), np.uint8)
    for kernel, source, given, expected in (
        (take_every, x[:, :, 0].copy(), {"STEP": 2}, x[:, ::2, 0]),
        (take_colour, x, {"colour": 1}, x[:, :columns, 1]),
        (copy_rows, x[:, :, 2].copy(), {}, x[:, :columns, 2]),
    ):
        there = kernel.on("emulator:check")
        there(source, y, **given)
        np.testing.assert_array_equal(y, expected)
        is_whole = kernel is copy_rows and columns % 16 == 0
        found = there.compiled(source, y, **given)
        elements, threads = (4096, 256) if is_whole else (1024, 128)
        threads = 256 if kernel is take_colour else threads  # from places apart
        assert elements // 2 < found.constants["B"] <= elements
        assert found.threads == threads


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[1], BN), tl.cdiv(x.shape[0], BM)))
def turn_rows(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    n, m = tl.program_id(0) * BN, tl.program_id(1) * BM
    tl.store(y, (n, m), tl.load(x, (m, n), (BM, BN)).T)


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[1], BN), tl.cdiv(x.shape[0], BM)))
def add_above(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    n, m = tl.program_id(0) * BN, tl.program_id(1) * BM
    tl.store(y, (m, n), tl.load(x, (m, n), (BM, BN)) + tl.load(x, (m - 1, n), (BM, BN)))


def test_turned_tiles_have_sides_alike_where_rows_begin_anywhere() -> None:
    for dtype, columns, sides in (
        (np.float16, 333, (32, 32)), (np.float32, 333, (32, 32)), (np.float16, 320, (32, 64)),
    ):  # fmt: skip
        x = np.zeros((96 if columns == 320 else 107, columns), dtype)
        made = turn_rows.on("emulator").compiled(x, x.T.copy())
        assert (made.constants["BM"], made.constants["BN"]) == sides


def test_rows_are_long_and_longer_whose_elements_come_one_by_one() -> None:
    """But not those of tiles that are turned, nor where tiles share rows with those above."""
    for kernel, columns, least, most in (
        (double_tiles, 1537, 513, 1024),
        (double_tiles, 1536, 512, 512),
        (turn_rows, 1537, 1, 64),
        (add_above, 1537, 1, 64),
    ):
        x = np.random.default_rng().standard_normal((40, columns)).astype(np.float16)
        turned = kernel is turn_rows
        y = np.full(x.T.shape if turned else x.shape, np.nan, np.float16)
        there = kernel.on("emulator:check")
        there(x, y)
        above = np.concatenate([0 * x[:1], x[:-1]])
        expected = x.T if turned else x + above if kernel is add_above else 2 * x
        np.testing.assert_array_equal(y, expected)
        assert least <= there.compiled(x, y).constants["BN"] <= most


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[0]))
def soften_columns(x: tl.array, y: tl.array, S: tl.const, B: tl.const = tl.auto):
    """softmax over the second of three axes."""
    i, image = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (image, 0, i), (S, B), padding=-tl.inf).to(tl.f32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y, (image, 0, i), (v / tl.sum(v, 0)).to(y.dtype))


@pytest.mark.parametrize(
    ("rows", "dtype", "columns"),
    [(58, np.float16, 64), (136, np.float16, 32), (512, np.float16, 16), (96, np.float32, 32)],
)
def test_columns_beside_fixed_rows_fill_lines_or_sectors(
    rows: int, dtype: type, columns: int
) -> None:
    """4 KiB of f16 beside 512 rows were 4 columns, a quarter of a sector."""
    x = np.random.default_rng(rows).standard_normal((2, rows, 256)).astype(dtype)
    y = np.full_like(x, np.nan)
    there = soften_columns.on("emulator:check")
    there(x, y, rows)
    wide = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, wide / wide.sum(1, keepdims=True), rtol=4e-3, atol=1e-4)
    assert there.compiled(x, y, rows).constants["B"] == columns


@tilec.kernel(
    grid=lambda y, B: (tl.cdiv(y.shape[3], B), y.shape[2], y.shape[0] * y.shape[1]),
)
def part_pixels(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    j, i, plane = tl.program_id(0) * B, tl.program_id(1), tl.program_id(2)
    image, c = plane // y.shape[1], plane % y.shape[1]
    row, column = 2 * i + c % 4 // 2, 2 * (j + tl.arange(B)) + c % 2
    tl.store(y, (image, c, i, j), tl.gather(x, (image, c // 4, row, column)))


def test_axes_whose_product_counts_programs_leave_the_others_known() -> None:
    x = np.random.default_rng().standard_normal((2, 3, 10, 90), dtype=np.float32)
    y = np.full((2, 12, 5, 45), np.nan, np.float32)
    there = part_pixels.on("emulator:check")
    there(x, y)
    parts = [x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    np.testing.assert_array_equal(y, np.stack(parts, axis=2).reshape(y.shape))
    assert there.compiled(x, y).constants["B"] == 64
