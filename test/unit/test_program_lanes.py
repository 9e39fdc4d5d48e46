"""Programs of a part of a warp: short rows, side by side in one warp."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call import jit
from tilec.call.jit import Kernel
from tilec.compile import program_lanes
from tilec.examples.cross_entropy import cross_entropy, reference
from tilec.examples.layer_norm import layer_norm
from tilec.examples.rms_norm import rms_norm
from tilec.examples.running import poisoned
from tilec.examples.softmax import row_tile, softmax
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.emulator_device import RESIDENT_CTAS

TARGETS = ["sm_80", "sm_90a", "sm_100a"]
THREADS = 256
"""Of a CTA."""


@tilec.kernel(grid=lambda starts: starts.shape[0] - 1)
def longest_of_rows(starts: tl.array, values: tl.array, y: tl.array, B: tl.const = tl.auto):
    """The largest of each run of values, 0 of none: groups of one warp take different times."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    highest = 0.0
    for at in tl.range(first, end, B):
        v = tl.where(at + tl.arange(B) < end, tl.load(values, at, B), 0.0)
        highest = tl.maximum(highest, tl.max(v))
    tl.store(y, row, highest)


@tilec.kernel(grid=lambda starts: starts.shape[0] - 1)
def sums_of_rows(starts: tl.array, values: tl.array, y: tl.array, B: tl.const = tl.auto):
    """The sum of each run of values: no lanes meet in the loop."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        acc += tl.where(at + tl.arange(B) < end, tl.load(values, at, B), 0.0)
    tl.store(y, row, tl.sum(acc))


@tilec.kernel(grid=lambda y: y.shape[0])
def squares(y: tl.array, N: tl.const):
    """y[p]: the sum of N squares from p on."""
    x = (tl.program_id(0) + tl.arange(N)).to(tl.f32)
    tl.store(y, tl.program_id(0), tl.sum(x * x))


@tilec.kernel(grid=lambda x: x.shape[0])
def soften_begun(x: tl.array, lengths: tl.array, y: tl.array, N: tl.const):
    """Softmax of the first lengths[p] elements of each row of at most N."""
    p = tl.program_id(0)
    score = tl.load(x, (p, 0), N).to(tl.f32)
    score = tl.where(tl.arange(N) < tl.load(lengths, p, ()), score, -tl.inf)
    tl.store(y, (p, 0), tl.softmax(score).to(y.dtype))


@tilec.kernel(grid=lambda x, G: (x.shape[1] // G, x.shape[0]))
def shares_of_groups(x: tl.array, y: tl.array, G: tl.const):
    """x over the sums of groups of G columns."""
    n, row = tl.program_id(0), tl.program_id(1)
    v = tl.load(x, (row, n * G), G)
    tl.store(y, (row, n * G), v / tl.sum(v))


@tilec.kernel(grid=lambda y: y.shape[0])
def sums_of_two(a: tl.array, b: tl.array, places: tl.array, y: tl.array, D: tl.const):
    """y[p] = a[places[p]] + b[p]."""
    p = tl.program_id(0)
    row = tl.load(a, (tl.load(places, p, ()), 0), D)
    tl.store(y, (p, 0), row + tl.load(b, (p, 0), D))


@tilec.kernel(grid=lambda y: y.shape[0])
def doubled(x: tl.array, y: tl.array, D: tl.const):
    p = tl.program_id(0)
    tl.store(y, (p, 0), tl.load(x, (p, 0), D) * 2)


def lanes(kernel: CompiledKernel) -> int:
    return kernel.threads // kernel.programs_per_cta


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of few programs count as crowded: a multiprocessor of the emulator's device has room
    for none, as far as the choice of lanes goes."""
    monkeypatch.setattr(
        jit, "better_suited", lambda kernel, *_: kernel.suits[1] and program_lanes.CROWD + 1
    )


@pytest.mark.parametrize(
    ("dtype", "tile", "rows", "expected"),
    [
        ("f32", 32, 100000, 8),
        ("f32", 96, 8704, 8),
        ("f32", 96, 8192, 32),
        ("f32", 128, 100000, 32),
        ("bf16", 224, 100000, 8),
        ("bf16", 32, 100000, 4),
        ("bf16", 32, 16896, 32),
        ("f16", 16, 100000, 2),
        ("bf16", 256, 100000, 32),
        ("bf16", 288, 100000, 32),
        ("bf16", 256, None, 32),
    ],
)
def test_lanes_go_by_bytes_and_programs(
    dtype: str, tile: int, rows: int | None, expected: int
) -> None:
    specs = [f"{name}:{dtype}[?,?:8;?:8,1]" for name in "xy"]
    sizes = None if rows is None else {name: (rows, tile) for name in "xy"}
    kernel = softmax.compile(specs, {"N": tile}, target="sm_90a", sizes=sizes)
    assert lanes(kernel) == expected
    demanded = softmax.demanding(num_warps=1)
    assert lanes(demanded.compile(specs, {"N": tile}, target="sm_90a", sizes=sizes)) == 32


@pytest.mark.parametrize(
    ("dtype", "tile", "expected"),
    [("f32", 128, 16), ("f32", 32, 8), ("bf16", 256, 32), ("bf16", 64, 16), ("bf16", 16, 8)],
)
def test_lanes_of_single_elements_have_four_each(dtype: str, tile: int, expected: int) -> None:
    """Two sectors at most; also where vectors would fill a warp."""
    sizes = {name: (100000, tile - 1) for name in "xy"}
    specs = [f"{name}:{dtype}[?,?;?,1]" for name in "xy"]
    assert lanes(softmax.compile(specs, {"N": tile}, target="sm_90a", sizes=sizes)) == expected


@tilec.kernel(grid=lambda x: x.shape[0], device="emulator:check")
def twice(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    tl.store(y, (row, 0), 2 * tl.load(x, (row, 0), N))


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [(30000, 64, 8), (20000, 64, 32), (None, 64, 32), (90000, 128, 32)],
)
def test_rows_whose_lanes_do_not_meet_take_parts_from_the_third_round_on(
    rows: int | None, columns: int, expected: int
) -> None:
    specs = [f"{name}:f16[?,?:8;?:8,1]" for name in "xy"]
    sizes = None if rows is None else {name: (rows, columns) for name in "xy"}
    assert lanes(twice.compile(specs, {"N": columns}, target="sm_90a", sizes=sizes)) == expected
    if rows is None:
        x = np.arange(300 * 64, dtype=np.float16).reshape(300, 64) / 7
        y = np.full_like(x, np.nan)
        twice(x, y, N=64)
        np.testing.assert_array_equal(y, 2 * x)


@tilec.kernel(grid=lambda y, B: (y.shape[0] + B - 1) // B)
def padded(x: tl.array, y: tl.array, W: tl.i32, B: tl.const):
    """Rows of x, with zeros behind them as far as W."""
    at = tl.program_id(0) * B + tl.arange(B)
    tl.store(y, tl.program_id(0) * B, tl.gather(x, (at // W, at % W)))


def test_what_goes_by_indices_is_single_elements() -> None:
    """A lane of 8 would go 32 times for the elements of two sectors, one behind the other."""
    sizes = {"x": (4096, 4096), "y": (4096 * 4100,)}
    kernel = padded.compile(
        ["x:bf16[?,?:8;?:8,1]", "y:bf16[?]", "W:i32"], {"B": 256}, target="sm_90a", sizes=sizes
    )
    assert lanes(kernel) == 32


def test_a_call_counts_its_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setattr(program_lanes, "CROWD", 1)
    few, many = (np.zeros((rows, 32), np.float32) for rows in (132, 133))
    kernel = Kernel(softmax.fn, softmax.grid)
    assert lanes(kernel.compiled(few, few, N=32)) == 32
    assert lanes(kernel.compiled(many, many, N=32)) == 8
    assert lanes(kernel.compiled(few, few, N=32)) == 32
    assert "lanes: 8 (there are many programs" in kernel.report(many, many, N=32)
    assert "lanes: 8" not in kernel.report(few, few, N=32)


def test_rows_that_may_be_long_or_meet_in_loops_are_walked_by_whole_warps() -> None:
    specs = ["logits:bf16[?,?:8;?:8,1]", "labels:i32[?]", "losses:f32[?]", "smoothing:f32"]
    sizes = {"logits": (100000, 160), "labels": (100000,), "losses": (100000,)}
    found = [
        lanes(cross_entropy.compile(specs, {"B": tile}, target="sm_90a", sizes=sizes))
        for tile in (160, tl.auto)
    ]
    assert found == [32, 8]

    specs = ["starts:i32[?]", "values:f32[?]", "y:f32[?]"]
    sizes = {"starts": (100001,), "values": (1000000,), "y": (100000,)}
    assert lanes(longest_of_rows.compile(specs, target="sm_90a", sizes=sizes)) == 32
    assert lanes(sums_of_rows.compile(specs, target="sm_90a", sizes=sizes)) == 8
    sizes["values"] = (10000000,)
    assert lanes(sums_of_rows.compile(specs, target="sm_90a", sizes=sizes)) == 32


def test_what_is_scaled_with_much_or_computed_of_nothing_has_whole_warps() -> None:
    rows = {"x": (100000, 256), "y": (100000, 256), "scales": (100000,)}
    specs = ["x:bf16[?,?:8;?:8,1]", "weight:bf16[?:8]", "y:bf16[?,?:8;?:8,1]"]
    specs += ["scales:f32[?]", "eps:f32"]
    found = [
        lanes(rms_norm.compile(specs, {"N": n}, target="sm_90a", sizes={**rows, "weight": (n,)}))
        for n in (128, 256)
    ]
    assert found == [8, 32]
    sizes = {"y": (100000,)}
    assert lanes(squares.compile(["y:f32[?]"], {"N": 256}, target="sm_90a", sizes=sizes)) == 8
    assert lanes(squares.compile(["y:f32[?]"], {"N": 512}, target="sm_90a", sizes=sizes)) == 32


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 3, 3 * THREADS // 8 * RESIDENT_CTAS - 5])
@pytest.mark.usefixtures("crowded")
def test_rows(target: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(rows).standard_normal((rows, 50), dtype=np.float32)
    y = poisoned(x.shape, np.float32)
    assert lanes(softmax.compiled(x, y, N=64)) == 8
    softmax.check(x, y, N=64)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 300), (300, 1), (7, 43), (43, 8), (2, 2)])
@pytest.mark.usefixtures("crowded")
def test_groups_of_rows(
    target: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a warp loads for its next program lies elsewhere along both axes."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(shape).uniform(1, 2, (shape[0], 32 * shape[1])).astype(np.float32)
    y = poisoned(x.shape, np.float32)
    assert lanes(shares_of_groups.compiled(x, y, 32)) < 32
    shares_of_groups.check(x, y, 32)
    sums = x.reshape(*shape, 32).sum(2).repeat(32, 1)
    np.testing.assert_allclose(y, x / sums, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [24, 37, 64])
@pytest.mark.usefixtures("crowded")
def test_rows_whose_places_are_loaded(
    target: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lanes meet, but programs wait twice; those that wait once have whole warps."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(columns)
    count = 3 * THREADS // 8 * RESIDENT_CTAS - 5
    a, b = (rng.standard_normal((n, columns)).astype(np.float16) for n in (50, count))
    places, y = rng.integers(0, 50, count, dtype=np.int32), poisoned((count, columns), np.float16)
    assert lanes(sums_of_two.compiled(a, b, places, y, 64)) < 32
    sums_of_two.check(a, b, places, y, 64)
    np.testing.assert_array_equal(y, a[places] + b)
    assert lanes(doubled.compiled(b, y, 64)) == 32


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("crowded")
def test_programs_of_one_warp_that_take_different_ways(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 99, 200)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    values, y = rng.random(starts[-1], dtype=np.float32), poisoned((200,), np.float32)
    longest_of_rows.check(starts, values, y)
    padded = np.concatenate([values, [0]]).astype(np.float32)
    np.testing.assert_array_equal(y, np.maximum.reduceat(padded, starts[:-1]) * (counts > 0))

    # The tile holds 64 elements, some rows have five times as many: lanes of a warp go on alone.
    rows = 3 * THREADS // 8 * RESIDENT_CTAS - 5
    counts = rng.integers(0, 40, rows)
    counts[::17] = rng.integers(100, 330, len(counts[::17]))
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    values, y = rng.random(starts[-1], dtype=np.float32), poisoned((rows,), np.float32)
    chosen = sums_of_rows.compiled(starts, values, y)
    assert lanes(chosen) == 8
    assert chosen.constants["B"] < 99
    sums_of_rows.check(starts, values, y)
    expected = np.add.reduceat(np.concatenate([values, [0]]), starts[:-1]) * (counts > 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5)

    logits = (4 * rng.standard_normal((130, 61))).astype(ml_dtypes.bfloat16)
    labels = np.where(rng.random(130) < 0.3, -100, rng.integers(0, 61, 130)).astype(np.int32)
    losses, gradient = reference(logits, labels, 0.1)
    found = poisoned((130,), np.float32)
    assert lanes(cross_entropy.compiled(logits, labels, found, 0.1)) < 32
    cross_entropy.check(logits, labels, found, 0.1)
    np.testing.assert_allclose(found, losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(logits.astype(np.float64), gradient, atol=8e-3)


@pytest.mark.usefixtures("crowded")
def test_what_a_row_is_scaled_with_and_rows_that_begin_anywhere() -> None:
    rng = np.random.default_rng(2)
    x, weight, bias = (rng.standard_normal(s).astype(np.float16) for s in ((70, 61), 61, 61))
    y = poisoned(x.shape, np.float16)
    layer_norm.check(x, weight, bias, y, 1e-5, N=64)
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = (wide - wide.mean(1, keepdims=True)) * scale * weight + bias
    np.testing.assert_allclose(y, expected, rtol=4e-3, atol=4e-3)


@pytest.mark.usefixtures("crowded")
def test_a_number_of_each_row_is_no_row() -> None:
    """128 elements of 4 bytes are as much as parts of warps load; a length beside them counts as
    none."""
    rng = np.random.default_rng()
    x, y = rng.standard_normal((37, 97), dtype=np.float32), poisoned((37, 97), np.float32)
    lengths = rng.integers(1, 98, 37).astype(np.int32)
    there = soften_begun.on("emulator:check")
    there(x, lengths, y, N=128)
    score = np.where(np.arange(97) < lengths[:, None], x.astype(np.float64), -np.inf)
    powers = np.exp(score - score.max(1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(1, keepdims=True), rtol=0, atol=1e-5)
    assert lanes(there.compiled(x, lengths, y, N=128)) == 16


def test_softmax_has_tiles_as_short_as_a_lane_each() -> None:
    tiles = {1: 32, 32: 32, 33: 64, 62: 64, 65: 128, 128: 128, 129: 256, 40000: 40192}
    assert {columns: row_tile(columns) for columns in tiles} == tiles
