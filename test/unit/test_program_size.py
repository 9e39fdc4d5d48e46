"""How many warps a program gets by itself: what it computes and stores counts as what it loads."""

from __future__ import annotations

import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import poisoned


@tilec.kernel(grid=(1,))
def copied(x: tl.array, y: tl.array):
    tl.store(y, 0, tl.load(x, 0, 1024))


@tilec.kernel(grid=(1,))
def converted(x: tl.array, y: tl.array):
    tl.store(y, 0, tl.load(x, 0, 1024).to(y.dtype))


@tilec.kernel(grid=(1,))
def filled(x: tl.array, y: tl.array):
    tl.store(y, 0, tl.full((4096,), 1.0, y.dtype))


@tilec.kernel(grid=(1,))
def widened(x: tl.array, y: tl.array):
    """Every element in 64 places."""
    row = tl.load(x, 0, 64)
    tl.store(y, 0, tl.reshape(tl.broadcast_to(row, (64, 64)), (4096,)))


@tilec.kernel(grid=(1,))
def counted(x: tl.array, y: tl.array):
    """How many of 256 elements equal each of 64 numbers."""
    same = tl.load(x, 0, 256)[None, :] == tl.arange(64)[:, None]
    tl.store(y, 0, tl.sum(same, 1).to(y.dtype))


@tilec.kernel(grid=(1,))
def centred(x: tl.array, y: tl.array, N: tl.const):
    """A row without its mean: all threads wait for its sum."""
    row = tl.load(x, 0, N)
    tl.store(y, 0, row - tl.sum(row) / N)


@tilec.kernel(grid=(1,))
def swapped(x: tl.array, y: tl.array, PLACES: tl.const):
    """The halves of a row of keys, and maybe of numbers beside them."""
    row = tl.exchange(tl.load(x, 0, 2048), 1024)
    if PLACES:
        row += tl.exchange(tl.arange(2048), 1024).to(row.dtype)
    tl.store(y, 0, row)


@pytest.mark.parametrize(
    ("dtype", "places", "warps"), [("i32", 1, 2), ("i64", 0, 2), ("i64", 1, 4)]
)
def test_warps_of_what_exchanges_places(dtype: str, places: int, warps: int) -> None:
    """32 elements a thread, of more than two words 16."""
    compiled = swapped.compile(
        [f"{a}:{dtype}[?:4]" for a in "xy"], {"PLACES": places}, target="sm_80"
    )
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def swapped_in_a_line(x: tl.array, y: tl.array, TIMES: tl.const):
    row = tl.load(x, 0, 1024)
    for _ in tl.static_range(TIMES):
        row = tl.minimum(row, tl.exchange(row, 1))
    tl.store(y, 0, row)


@pytest.mark.parametrize(("times", "warps"), [(50, 1), (51, 2)])
def test_two_warps_share_what_changes_places_often(times: int, warps: int) -> None:
    alone = swapped_in_a_line.demanding(persistent=False)
    compiled = alone.compile(["x:i32[?:4]", "y:i32[?:4]"], {"TIMES": times}, target="sm_80")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def masked(x: tl.array, keep: tl.array, y: tl.array):
    tl.store(y, 0, tl.where(tl.load(keep, 0, 1024) != 0, tl.load(x, 0, 1024), 0.0))


def test_warps_of_two_tiles_that_are_loaded() -> None:
    """As many as without the narrow one."""
    specs = ["x:f32[?:16]", "keep:i8[?:16]", "y:f32[?:16]"]
    assert masked.compile(specs, {}, target="sm_80").threads == 32 * 8


@pytest.mark.parametrize(
    ("source", "dtype", "warps"),
    [("f32", "f32", 8), ("f16", "f32", 4), ("f32", "f16", 4), ("i8", "f32", 4), ("i8", "f16", 2)],
)
def test_warps_of_conversions(source: str, dtype: str, warps: int) -> None:
    """One access each of the narrower, if the wider takes no more than two."""
    compiled = converted.compile([f"x:{source}[?:16]", f"y:{dtype}[?:16]"], {}, target="sm_80")
    assert compiled.threads == 32 * warps


@pytest.mark.filterwarnings("ignore:.*registers")  # of `counted`: each thread reads whole rows
@pytest.mark.parametrize(
    ("kernel", "warps"), [(copied, 8), (filled, 8), (widened, 8), (counted, 8)]
)
def test_warps(kernel: Kernel, warps: int) -> None:
    compiled = kernel.compile(["x:f32[?:4]", "y:f32[?:4]"], target="sm_80")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def filtered(x: tl.array, weight: tl.array, y: tl.array, TIMES: tl.const, BIAS: tl.const):
    """Filters of TIMES elements down 64 columns."""
    total = tl.zeros((16, 64), x.dtype)
    if BIAS:
        total += tl.load(weight, (TIMES, 0), (64,), dims=(1,))[None, :]
    for k in tl.static_range(TIMES):
        w = tl.load(weight, (k, 0), (64,), dims=(1,))
        total += w[None, :] * tl.load(x, (k, 0), (16, 64))
    tl.store(y, (0, 0), total)


@pytest.mark.parametrize(("times", "bias", "warps"), [(4, 1, 2), (4, 0, 2), (1, 1, 8)])
def test_warps_of_what_loads_more_rows_than_tiles(times: int, bias: int, warps: int) -> None:
    """A thread loads its part of a row once for all elements that it has below."""
    specs = ["x:f32[?,?:4;?:4,1]", "weight:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]"]
    compiled = filtered.compile(specs, {"TIMES": times, "BIAS": bias}, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def dropped(x: tl.array, y: tl.array):
    tl.store(y, 0, tl.where(tl.rand(7, tl.arange(1024)) < 0.5, tl.load(x, 0, 1024), 0.0))


@pytest.mark.parametrize(("kernel", "warps"), [(copied, 4), (dropped, 8)])
def test_warps_of_what_takes_hundreds_of_instructions(kernel: Kernel, warps: int) -> None:
    compiled = kernel.compile(["x:f16[?:8]", "y:f16[?:8]"], target="sm_80")
    assert compiled.threads == 32 * warps


@pytest.mark.parametrize(("elements", "warps"), [(768, 2), (864, 2), (896, 4), (1024, 4)])
def test_seven_eighths_of_a_power_of_two_count_as_it(elements: int, warps: int) -> None:
    compiled = centred.compile(["x:f32[?:4]", "y:f32[?:4]"], {"N": elements}, target="sm_80")
    assert compiled.threads == 32 * warps


@pytest.mark.parametrize(("elements", "warps"), [(16384, 16), (32768, 32)])
def test_warps_of_long_rows(elements: int, warps: int) -> None:
    compiled = centred.compile(["x:f32[?:4]", "y:f32[?:4]"], {"N": elements}, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def integrated(x: tl.array, y: tl.array, N: tl.const, SINES: tl.const):
    """Nothing is loaded: a sum of what is computed."""
    at = tl.arange(N).to(tl.f32)
    tl.store(y, 0, tl.sum(tl.sin(at) * tl.exp(at) if SINES else at * at))


@tilec.kernel(grid=(1,))
def scaled(x: tl.array, weight: tl.array, y: tl.array, N: tl.const):
    """A row divided by its sum, each element with a weight of its own."""
    row = tl.load(x, 0, N).to(tl.f32)
    tl.store(y, 0, (row / tl.sum(row) * tl.load(weight, 0, N).to(tl.f32)).to(y.dtype))


@pytest.mark.parametrize(
    ("dtype", "elements", "warps"),
    [
        ("bf16", 4096, 8),
        ("bf16", 8192, 16),
        ("bf16", 16384, 16),
        ("bf16", 32768, 16),
        ("f32", 16384, 16),
        ("f32", 32768, 32),
    ],
)
def test_warps_of_long_rows_that_are_scaled(dtype: str, elements: int, warps: int) -> None:
    specs = [f"{name}:{dtype}[?:8]" for name in ("x", "weight", "y")]
    compiled = scaled.compile(specs, {"N": elements}, target="sm_90a")
    assert compiled.threads == 32 * warps


@pytest.mark.parametrize(
    ("points", "sines", "warps"),
    [(64, True, 1), (256, False, 1), (4096, False, 2), (256, True, 4), (4096, True, 16)],
)
def test_warps_that_compute(points: int, sines: bool, warps: int) -> None:
    constants = {"N": points, "SINES": sines}
    compiled = integrated.compile(["x:f32[?]", "y:f32[?]"], constants, target="sm_90a")
    (chosen,) = (d["num_warps"] for d in compiled.report["decisions"] if d["about"] == "warps")
    assert chosen == warps


@tilec.kernel(grid=(1,))
def walked(x: tl.array, y: tl.array, N: tl.const, NEEDED: tl.const):
    """A sum of blocks, or one that each block's maximum scales."""
    total = 0.0
    for start in tl.range(0, x.shape[0], N):
        v = tl.load(x, start, N)
        total += tl.sum(v / tl.max(v)) if NEEDED else tl.sum(v)
    tl.store(y, 0, total)


@pytest.mark.filterwarnings("ignore:.*registers")  # of the longest, two tiles of 32 a thread
@pytest.mark.parametrize(
    ("elements", "needed", "warps"),
    [(2048, True, 4), (2048, False, 8), (16384, True, 16), (32768, True, 32)],
)
def test_warps_that_meet_in_loops(elements: int, needed: bool, warps: int) -> None:
    constants = {"N": elements, "NEEDED": needed}
    compiled = walked.compile(["x:f32[?]", "y:f32[?]"], constants, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def summed(x: tl.array, y: tl.array, AXIS: tl.const, RUNNING: tl.const):
    """Sums of a tile's columns or rows, all of them or the last ones."""
    tile = tl.load(x, (0, 0), (64, 64))
    if RUNNING:
        tl.store(y, (0, 0), tl.cumsum(tile, AXIS))
    else:
        tl.store(y, (0, 0), tl.sum(tile, AXIS)[None, :])


@pytest.mark.parametrize(
    ("running", "axis", "strides", "warps"),
    [
        (False, 0, "?:4,1", 8),
        (False, 1, "?:4,1", 16),
        (False, 1, "1,?:4", 8),
        (True, 0, "?:4,1", 4),
        (True, 1, "?:4,1", 4),
    ],
)
def test_warps_where_rows_meet(axis: int, strides: str, warps: int, running: bool) -> None:
    """Each thread holds more of a column of memory than of a row, and more of what is scanned."""
    specs = [f"{name}:f32[?:4,?:4;{strides}]" for name in "xy"]
    compiled = summed.compile(specs, {"AXIS": axis, "RUNNING": running}, target="sm_80")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def recurring(x: tl.array, y: tl.array, N: tl.const, DECAYS: tl.const):
    """A sum of rows, or one that decays from row to row."""
    state = tl.zeros(N, tl.f32)
    for t in tl.range(x.shape[0]):
        row = tl.load(x, (t, 0), N)
        state = 0.5 * state + row if DECAYS else state + row
    tl.store(y, (0, 0), state[None, :])


@pytest.mark.parametrize(
    ("elements", "decays", "warps"),
    [(64, True, 2), (512, True, 4), (512, False, 2), (4096, True, 16)],
)
def test_warps_of_recurrences(elements: int, decays: bool, warps: int) -> None:
    """What an iteration computes from the one before has few elements in each thread."""
    specs = [f"{name}:f32[?,?:4;?:4,1]" for name in "xy"]
    constants = {"N": elements, "DECAYS": decays}
    compiled = recurring.compile(specs, constants, target="sm_80")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def scored(x: tl.array, weight: tl.array, y: tl.array, WEIGHTED: tl.const):
    """A row reduced six times, maybe with one beside it."""
    row, total = tl.load(x, 0, 2048), 0.0
    other = tl.load(weight, 0, 2048) if WEIGHTED else row
    for power in tl.static_range(6):
        row = row * other
        total += tl.sum(row) * power
    tl.store(y, 0, row * total)


@pytest.mark.parametrize(("weighted", "warps"), [(False, 4), (True, 4)])
def test_warps_of_rows_that_meet_often(weighted: bool, warps: int) -> None:
    specs = [f"{name}:f32[?:4]" for name in ("x", "weight", "y")]
    compiled = scored.compile(specs, {"WEIGHTED": weighted}, target="sm_80")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def compared(x: tl.array, rows: tl.array, y: tl.array):
    """Products of 16 rows of 128 elements with each of some rows."""
    here = tl.load(x, (0, 0), (16, 128))
    for j in tl.range(0, rows.shape[0]):
        row = tl.load(rows, (j, 0), (1, 128))
        tl.store(y, (0, j), tl.sum(here * row, 1)[:, None])


@tilec.kernel(grid=(1,))
def gathered_up(x: tl.array, rows: tl.array, y: tl.array):
    """The same, of what the rows add up to."""
    here = tl.load(x, (0, 0), (16, 128))
    for j in tl.range(0, rows.shape[0]):
        row = tl.load(rows, (j, 0), (1, 128))
        here = here * 0.5 + row
        tl.store(y, (0, j), tl.sum(here * row, 1)[:, None])


@pytest.mark.parametrize(("kernel", "warps"), [(compared, 4), (gathered_up, 16)])
def test_warps_that_reduce_more_than_they_load(kernel: Kernel, warps: int) -> None:
    """A tile that a loop only reads takes no more threads than one that it loads."""
    specs = [f"{name}:f32[?,?:4;?:4,1]" for name in ("x", "rows", "y")]
    assert kernel.compile(specs, target="sm_90a").threads == 32 * warps


@tilec.kernel(grid=(1,))
def looked_up(x: tl.array, places: tl.array, y: tl.array, BY_NUMBER: tl.const):
    """Products of a row of 128 elements with rows of `x`, 64 at a time."""
    wanted = tl.load(y, (0, 0), (1, 128))
    for j in tl.range(0, places.shape[0], 64):
        if BY_NUMBER:
            at = tl.load(places, j, 64) if BY_NUMBER == 1 else j.to(tl.i32) + tl.arange(64)
            rows = tl.gather(x, (at[:, None], tl.arange(128)[None, :]))
        else:
            rows = tl.load(x, (j, 0), (64, 128))
        tl.store(y, (1 + j, 0), tl.sum(rows * wanted, 1)[:, None])


@pytest.mark.parametrize(("by_number", "warps"), [(1, 4), (2, 16), (0, 16)])
def test_warps_of_rows_by_number(by_number: int, warps: int) -> None:
    """A warp looks up the numbers of many rows; rows at places that the loop computes are as those
    of one tile."""
    rows = "f32[?,?:4;?:4,1]"
    specs = [f"x:{rows}", "places:i32[?:4]", f"y:{rows}"]
    compiled = looked_up.compile(specs, {"BY_NUMBER": by_number}, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=lambda x: x.shape[0])
def running_logsumexp(x: tl.array, y: tl.array, B: tl.const):
    """Of rows in tiles of B: each step of the scan takes two exponentials."""
    row, high = tl.program_id(0), -1e30
    for n in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, n), B, padding=-1e30)
        m, s = tl.associative_scan(
            (v, tl.full((B,), 1.0, tl.f32)),
            0,
            lambda a, p, b, q: (
                tl.maximum(a, b),
                p * tl.exp(a - tl.maximum(a, b)) + q * tl.exp(b - tl.maximum(a, b)),
            ),
        )
        top = tl.maximum(m, high)
        logs = top + tl.log(s * tl.exp(m - top) + tl.exp(high - top))
        tl.store(y, (row, n), logs)
        high = tl.max(logs)


@pytest.mark.parametrize(("elements", "warps"), [(512, 2), (1024, 4), (2048, 8)])
def test_warps_of_costly_scans_in_a_loop(elements: int, warps: int) -> None:
    specs = [f"{name}:f32[?,?:4;?:4,1]" for name in ("x", "y")]
    compiled = running_logsumexp.compile(specs, {"B": elements}, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def multiplied(x: tl.array, y: tl.array, out: tl.array, N: tl.const):
    """16 rows by N columns."""
    acc = tl.zeros((16, N), tl.f32)
    for k in tl.range(0, x.shape[1], 32):
        acc = tl.dot(tl.load(x, (0, k), (16, 32)), tl.load(y, (k, 0), (32, N)), acc)
    tl.store(out, (0, 0), acc.to(out.dtype))


@pytest.mark.parametrize(("columns", "warps"), [(32, 2), (64, 4)])
def test_warps_of_small_products(columns: int, warps: int) -> None:
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in ("x", "y", "out")]
    compiled = multiplied.compile(specs, {"N": columns}, target="sm_90a")
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=lambda o: o.shape[0])
def solved(k: tl.array, o: tl.array, TIMES: tl.const):
    """Rows of 16 x 16 products, each less those in front of it times the product's."""
    i, at = tl.program_id(0), tl.arange(16)
    rows = tl.load(k, (i, 0, 0), (16, 64))
    product = tl.dot(rows, rows.T)
    for row in tl.range(1, 16):
        mine = tl.sum(tl.where(at[:, None] == row, product, 0.0), 0)
        less = tl.sum(tl.where(at[:, None] < row, tl.reshape(mine, (16, 1)) * product, 0.0), 0)
        product = tl.where(at[:, None] == row, mine - TIMES * less, product)
    tl.store(o, (i, 0, 0), product)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_one_warp_has_all_rows_that_a_loop_reduces(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would meet twice in each iteration."""
    monkeypatch.setenv("TILEC_TARGET", target)
    k = (np.random.default_rng(3).standard_normal((3, 16, 64)) / 8).astype(np.float16)
    o, expected = poisoned((3, 16, 16), np.float32), np.zeros((3, 16, 16))
    for product, one in zip(expected, k.astype(np.float64), strict=True):
        product[:] = one @ one.T
        for row in range(1, 16):
            product[row] -= 0.5 * (product[row, :row] @ product[:row])
    there = solved.on("emulator:check")
    there(k, o, 0.5)
    np.testing.assert_allclose(o, expected, atol=2e-3)
    compiled = there.compiled(k, o, 0.5)
    assert compiled.threads == 32 * compiled.programs_per_cta


@tilec.kernel(grid=(1,))
def summed_product(
    x: tl.array, y: tl.array, z: tl.array, sums: tl.array, M: tl.const, AXIS: tl.const
):
    """A product, and its rows or columns added up."""
    found = tl.dot(tl.load(x, (0, 0), (M, 64)), tl.load(y, (0, 0), (64, 32)))
    tl.store(sums, 0, tl.sum(tl.exp(found), AXIS))
    tl.store(z, (0, 0), found.to(z.dtype))


@pytest.mark.parametrize(
    ("rows", "axis", "warps"), [(16, 1, 2), (32, 1, 2), (48, 1, 4), (64, 1, 4), (32, 0, 4)]
)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_no_warp_computes_rows_of_another(rows: int, axis: int, warps: int, target: str) -> None:
    """Of 16 rows a warp has all where they meet again behind a product."""
    specs = [f"{a}:bf16[?:8,?:8;?:8,1]" for a in "xyz"]
    constants = {"M": rows, "AXIS": axis}
    compiled = summed_product.compile([*specs, "sums:f32[?]"], constants, target=target)
    assert compiled.threads == 32 * warps


@tilec.kernel(grid=(1,))
def sums_beside(x: tl.array, y: tl.array, sums: tl.array, AXIS: tl.const, KEPT: tl.const):
    """128 rows times 32 columns each time: what rows or columns come to is stored, or added up."""
    left = tl.load(x, (0, 0), (128, 64))
    total = tl.zeros((128 if AXIS else 32,), tl.f32)
    for n in tl.range(0, y.shape[1], 32):
        found = tl.exp(tl.dot(left, tl.load(y, (0, n), (64, 32))))
        if KEPT:
            tl.store(sums, (n // 32, 0), tl.sum(found, AXIS)[None, :])
        else:
            total += tl.sum(found, AXIS)
    if not KEPT:
        tl.store(sums, (0, 0), total[None, :])


@pytest.mark.parametrize(
    ("axis", "kept", "warps"), [(0, 1, 4), (0, 0, 8), (1, 1, 8)], ids=["meet", "later", "rows"]
)
def test_two_sets_of_warps_that_meet_are_one(axis: int, kept: int, warps: int) -> None:
    """Where columns of a product are added up in each iteration no set gets ahead of another."""
    specs = ["x:bf16[?,?:8;?:8,1]", "y:bf16[?,?:8;?:8,1]", "sums:f32[?,?:4;?:4,1]"]
    compiled = sums_beside.compile(specs, {"AXIS": axis, "KEPT": kept}, target="sm_90a")
    assert decisions(compiled, "warps")[0].startswith(f"{warps} ")


@tilec.kernel(grid=(1,))
def unpacked(q: tl.array, scales: tl.array, y: tl.array, NUMBERED: tl.const):
    """Numbers of 4 bits, eight rows in a word, times those of their groups."""
    row, column = tl.arange(32)[:, None], tl.arange(64)[None, :]
    if NUMBERED:
        words = tl.gather(q, (row // 8, column))
        scale = tl.gather(scales, (row // 16, column))
    else:
        words, scale = tl.load(q, (0, 0), (32, 64)), tl.load(scales, (0, 0), (32, 64))
    tl.store(y, (0, 0), ((words >> (row % 8 * 4)) & 15).to(y.dtype) * scale)


@pytest.mark.parametrize(("numbered", "warps"), [(1, 8), (0, 16)])
def test_warps_of_what_goes_by_numbers(numbered: int, warps: int) -> None:
    """A thread stores whole vectors; two tiles that are loaded whole have more warps."""
    specs = ["q:i32[?,?:4;?:4,1]", "scales:f16[?,?:8;?:8,1]", "y:f16[?,?:8;?:8,1]"]
    compiled = unpacked.compile(specs, {"NUMBERED": numbered}, target="sm_90a")
    assert compiled.threads == 32 * warps
