"""Tiles of loops along rows and down columns, by the rows' length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tile_shapes import H200, HOPPER, array, soften, taken

import tilec
import tilec.language as tl
from tilec.call.auto_constants import SHORT_STREAMED, STREAMED
from tilec.call.specialization import specialize
from tilec.costs.launch_work import work_of
from tilec.costs.model import predict
from tilec.costs.work import Work


@pytest.mark.parametrize(("columns", "rows"), [(256, 8), (1000, 2), (8192, 1), (65536, 1)])
def test_rows_beside_a_length_that_is_given(columns: int, rows: int) -> None:
    """4 KiB of f16 together, or a row."""

    @tilec.kernel(grid=lambda y, R: tl.cdiv(y.shape[0], R))
    def add_up(x: tl.array, y: tl.array, N: tl.const, R: tl.const = tl.auto):
        row = tl.program_id(0) * R
        tl.store(y, row, tl.sum(tl.load(x, (row, 0), (R, N)).to(tl.f32), 1))

    values = {"x": array(64, columns, dtype="f16"), "y": array(64, dtype="f32")}
    assert taken(add_up, {**values, "N": columns, "R": tl.auto})[0] == {"R": rows}


def test_loops_along_rows_take_tiles_by_their_length() -> None:
    """Short rows take short tiles, and so do many rows; few long ones have little else to load.
    That is where launches may bring longer rows."""

    def first(rows: int, columns: int) -> int:
        values = {"x": array(rows, columns, dtype="f16"), "y": array(rows, columns, dtype="f16")}
        return taken(soften, {**values, "B": tl.auto}, is_most=False)[0]["B"]

    assert first(8192, 1536) <= 2048
    assert 2048 <= first(900, 10000) <= 4096
    assert first(64, 250000) == first(2, 250000) == 16384


def test_long_rows_take_no_short_steps() -> None:
    """Each step waits for what a warp reduces."""

    def first(rows: int, columns: int) -> int:
        values = {"x": array(rows, columns, dtype="f16"), "y": array(rows, columns, dtype="f16")}
        return taken(soften, {**values, "B": tl.auto}, is_most=False)[0]["B"]

    for columns in (3080, 4096, 4361, 6000, 8192):
        assert first(20000, columns) >= 1024
    assert first(54248, 736) in SHORT_STREAMED


def test_short_rows_take_a_tile_that_holds_them() -> None:
    """Up to five eighths of the smallest tile of long rows, in eight sizes an octave; and up to
    three such tiles, which would each be one round of the loop, in steps of a quarter; and of few
    rows, two a multiprocessor, up to twelve, if they are read twice. That is where launches may
    bring longer rows."""

    def first(columns: int, rows: int = 99) -> int:
        values = {"x": array(rows, columns, dtype="f16"), "y": array(rows, columns, dtype="f16")}
        return taken(soften, {**values, "B": tl.auto}, is_most=False)[0]["B"]

    found = {columns: first(columns) for columns in (1, 33, 145, 160, 530, 640)}
    assert found == {1: 32, 33: 64, 145: 160, 160: 160, 530: 576, 640: 640}
    assert {columns: first(columns) for columns in (641, 1024)} == {641: 1024, 1024: 1024}
    found = {columns: first(columns) for columns in (1025, 1500, 3072)}
    assert found == {1025: 1280, 1500: 1536, 3072: 3072}
    found = {(rows, columns): first(columns, rows) for rows, columns in ((99, 4300), (260, 11000))}
    assert found == {(99, 4300): 4352, (260, 11000): 11008}
    assert first(3073, rows=300) in (1024, 2048, 4096)
    assert first(12289) in (4096, 8192, 16384)


@tilec.kernel(grid=lambda y: y.shape[0])
def segment_sums(starts: tl.array, values: tl.array, y: tl.array, B: tl.const = tl.auto):
    """Sums of runs of values, each of which ends where the next begins."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        acc += tl.where(at + tl.arange(B) < end, tl.load(values, at, B), 0.0)
    tl.store(y, row, tl.sum(acc))


@pytest.mark.parametrize(
    ("rows", "elements", "tile"), [(94403, 94403 * 21, 64), (99, 0, 32), (1, 300, 640)]
)
def test_rows_that_memory_begins_take_twice_their_mean(rows: int, elements: int, tile: int) -> None:
    values = {
        "starts": array(rows + 1, dtype="i32"),
        "values": array(elements, dtype="f32"),
        "y": array(rows, dtype="f32"),
    }
    assert taken(segment_sums, {**values, "B": tl.auto})[0] == {"B": tile}
    longer = {**values, "values": array(rows * 400, dtype="f32")}
    steps = (32,) if rows > 10000 else (*SHORT_STREAMED, *STREAMED)  # several at once, of many
    assert taken(segment_sums, {**longer, "B": tl.auto})[0]["B"] in steps


def test_results_of_short_rows_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of none to many tiles, more of them than programs run at once."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng()
    counts = rng.integers(0, 50, 200)
    counts[77] = 300
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    values, y = rng.standard_normal(starts[-1], dtype=np.float32), np.full(200, np.nan, np.float32)
    there = segment_sums.on("emulator:check")
    there(starts, values, y)
    assert there.compiled(starts, values, y).constants["B"] == 64
    padded = np.concatenate([values, [0]]).astype(np.float64)
    expected = np.add.reduceat(padded, starts[:-1]) * (counts > 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)


def test_loops_down_few_columns_take_narrow_tiles() -> None:
    """Eight programs of 64 columns would have little under way."""

    @tilec.kernel(grid=lambda y, BN: tl.cdiv(y.shape[0], BN))
    def add_rows(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
        n, acc = tl.program_id(0) * BN, tl.zeros((BM, BN), tl.f32)
        for m in tl.range(0, x.shape[0], BM):
            acc += tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        tl.store(y, n, tl.sum(acc, 0))

    values = {"x": array(4096, 512, dtype="f16"), "y": array(512, dtype="f32")}
    assert taken(add_rows, {**values, "BM": tl.auto, "BN": tl.auto})[0] == {"BM": 512, "BN": 16}


def test_what_programs_read_again_comes_from_memory_where_it_is_too_much() -> None:
    def work(columns: int) -> Work:
        arrays = {name: array(4096, columns, dtype="f16") for name in "xy"}
        found = specialize(soften.parameters, values := {**arrays, "B": 4096})
        module = soften.source_module(found.parameters, dict(found.constants), target="sm_90a")
        return work_of(module, found.parameters, values, HOPPER).work

    short, long = work(4096), work(131072)
    assert (short.again_bytes, long.again_bytes) == (2 * 4096, 2 * 131072)
    assert [loop.exchanges for loop in short.loops] == [1, 0]
    once = replace(long, again_bytes=0)
    assert predict(short, H200) == predict(replace(short, again_bytes=0), H200)
    assert 1.3 < predict(long, H200).us / predict(once, H200).us < 1.6
