"""Warps of programs by what a thread accesses: gathers, a run as one, and what columns have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.layer_norm import layer_norm


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def spread(x: tl.array, y: tl.array, TAPS: tl.const, APART: tl.const, B: tl.const = 512):
    """y[i]: the sum of the TAPS elements of x from APART i on."""
    i = tl.program_id(0) * B + tl.arange(B)
    first = i if APART == 1 else APART * i
    total = tl.zeros((B,), tl.f32)
    for k in tl.static_range(TAPS):
        total += tl.gather(x, (first + 8 * k,), other=0.0).to(tl.f32)
    tl.store(y, tl.program_id(0) * B, total.to(y.dtype))


@pytest.mark.parametrize(
    ("dtype", "taps", "apart", "warps"),
    [
        ("f16", 9, 3, 8),  # 4608 accesses
        ("f16", 4, 3, 8),
        ("f16", 1, 3, 2),  # a vector of what is stored a thread
        ("f32", 9, 3, 8),
        ("f32", 1, 3, 4),
        ("f16", 9, 1, 2),  # runs of eight
    ],
)
def test_accesses_of_a_thread(dtype: str, taps: int, apart: int, warps: int) -> None:
    arrays = [f"{name}:{dtype}[?:8]" for name in "xy"]
    constants = {"TAPS": taps, "APART": apart}
    kernel = spread.compile(arrays, constants, target="sm_90a")
    assert kernel.threads == 32 * warps


@pytest.mark.parametrize(("programs", "warps"), [(132, 8), (16 * 132, 8), (16 * 132 + 1, 4)])
def test_crowds_have_more_accesses_a_thread(programs: int, warps: int) -> None:
    arrays, constants = ["x:f16[?:8]", "y:f16[?:8]"], {"TAPS": 4, "APART": 3}
    sizes = {"x": (3 * 512 * programs,), "y": (512 * programs,)}
    kernel = spread.compile(arrays, constants, target="sm_90a", sizes=sizes)
    assert kernel.threads == 32 * warps


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def dropped(x: tl.array, y: tl.array, B: tl.const = 1024):
    i = tl.program_id(0) * B
    kept = tl.rand(7, i + tl.arange(B)) < 0.5
    tl.store(y, i, tl.where(kept, tl.load(x, i, B), 0.0))


@pytest.mark.parametrize(("programs", "warps"), [(264, 8), (265, 4), (132 * 40, 4)])
def test_threads_of_more_programs_share_what_takes_hundreds_of_instructions(
    programs: int, warps: int
) -> None:
    sizes = dict.fromkeys("xy", (1024 * programs,))
    kernel = dropped.compile(["x:f16[?:8]", "y:f16[?:8]"], target="sm_90a", sizes=sizes)
    assert kernel.threads == 32 * warps


@pytest.mark.parametrize(("elements", "warps"), [(2**14, 2), (2**22, 8)])
def test_many_small_programs_share_ctas(elements: int, warps: int) -> None:
    """Of two warps if there are few, of one, eight in a CTA, if there are many."""
    arrays, constants = ["x:f16[?:8]", "y:f16[?:8]"], {"TAPS": 1, "APART": 3}
    sizes = {"x": (3 * elements,), "y": (elements,)}
    kernel = spread.compile(arrays, constants, target="sm_90a", sizes=sizes)
    assert kernel.threads == 32 * warps
    assert kernel.programs_per_cta == (8 if warps == 8 else 1)


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def worked(x: tl.array, y: tl.array, TIMES: tl.const, B: tl.const = 512):
    """y: sines of sines of x."""
    i = tl.program_id(0) * B
    v = tl.load(x, i, B).to(tl.f32)
    for _ in tl.static_range(TIMES):
        v = tl.sin(v)
    tl.store(y, i, v.to(y.dtype))


@pytest.mark.parametrize(("times", "programs"), [(0, 8), (3, 1)])
def test_what_takes_longer_than_a_cta_to_begin_shares_none(times: int, programs: int) -> None:
    sizes = dict.fromkeys("xy", (2**22,))
    kernel = worked.compile(
        ["x:f16[?:8]", "y:f16[?:8]"], {"TIMES": times}, target="sm_90a", sizes=sizes
    )
    assert kernel.programs_per_cta == programs


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[0], BM), tl.cdiv(x.shape[1], BN)))
def mixed(
    x: tl.array, parts: tl.array, y: tl.array, PARTS: tl.const, BM: tl.const = 64, BN: tl.const = 64
):
    """y: x, times PARTS sums of the four numbers that each column has."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    v, four = tl.load(x, (m, n), (BM, BN)), tl.load(parts, (n, 0), (BN, 4))
    for k in tl.static_range(PARTS):
        v *= tl.sum(tl.where((tl.arange(4) == k)[None, :], four, 0), 1)[None, :]
    tl.store(y, (m, n), v)


@pytest.mark.parametrize(("parts", "warps"), [(4, 4), (2, 8)])
def test_columns_by_small_reductions(parts: int, warps: int) -> None:
    """Few rows a thread would add up each column's numbers again and again."""
    arrays = ["x:bf16[?,?:8;?:8,1]", "parts:bf16[?,4;4,1]", "y:bf16[?,?:8;?:8,1]"]
    kernel = mixed.compile(arrays, {"PARTS": parts}, target="sm_90a")
    assert kernel.threads == 32 * warps


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def near(x: tl.array, y: tl.array, RECURS: tl.const, BM: tl.const = 32, BN: tl.const = 64):
    """y[i]: how near all of x are to x[i]."""
    m = tl.program_id(0) * BM
    at, total = tl.load(x, m, BM)[:, None], tl.zeros((BM, BN), tl.f32)
    for n in tl.range(0, x.shape[0], BN):
        apart = at - tl.load(x, n, BN)[None, :]
        total = total * 0.5 + apart if RECURS else total + apart * apart
    tl.store(y, m, tl.sum(total, 1))


@pytest.mark.parametrize(("recurs", "warps"), [(False, 4), (True, 16)])
def test_sums_of_pairs(recurs: bool, warps: int) -> None:
    """What is only added to waits for nothing: fewer threads load rows and columns."""
    kernel = near.compile(["x:f32[?]", "y:f32[?]"], {"RECURS": recurs}, target="sm_90a")
    assert kernel.threads == 32 * warps


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[0], BM), tl.cdiv(x.shape[1], BN)))
def scaled(
    x: tl.array, parts: tl.array, y: tl.array, PARTS: tl.const, BM: tl.const = 16, BN: tl.const = 64
):
    """y: x, times the product of the numbers that each column has."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    v = tl.load(x, (m, n), (BM, BN))
    for k in tl.static_range(PARTS):
        v *= tl.load(parts, (k, n), (BN,), dims=(1,))[None, :]
    tl.store(y, (m, n), v)


@pytest.mark.parametrize(
    ("rows", "parts", "warps"), [(4096, 4, 2), (4096, 3, 8), (64, 4, 2), (64, 3, 8)]
)
def test_what_columns_have(rows: int, parts: int, warps: int) -> None:
    """Loaded once for several rows."""
    arrays = ["x:f32[?,?:4;?:4,1]", "parts:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]"]
    sizes = {"x": (rows, 2048), "parts": (parts, 2048), "y": (rows, 2048)}
    kernel = scaled.compile(arrays, {"PARTS": parts}, target="sm_90a", sizes=sizes)
    assert kernel.threads == 32 * warps
    assert not any(kernel.suits)


@tilec.kernel(grid=lambda a: a.shape[0])
def factor(a: tl.array, y: tl.array, N: tl.const):
    """y[b]: the lower triangle whose product with its transpose is a[b]."""
    b, i = tl.program_id(0), tl.arange(N)
    left, found = tl.load(a, (b, 0, 0), (N, N)), tl.zeros((N, N), tl.f32)
    for j in tl.range(N):
        column = tl.sum(tl.where((i == j)[None, :], left, 0.0), 1)
        scale = tl.rsqrt(tl.sum(tl.where(i == j, column, 0.0)))
        column = tl.where(i >= j, column * scale, 0.0)
        found = tl.where((i == j)[None, :], column[:, None], found)
        left = left - column[:, None] * column[None, :]
    tl.store(y, (b, 0, 0), found)


@pytest.mark.parametrize(("size", "warps"), [(32, 1), (64, 4), (20, 1)])
def test_a_loop_that_loads_nothing_meets_in_few_warps(size: int, warps: int) -> None:
    rng = np.random.default_rng()
    x = rng.standard_normal((3, size, size), dtype=np.float32)
    a = (x @ x.transpose(0, 2, 1) / size + np.eye(size)).astype(np.float32)
    y = np.full_like(a, np.nan)
    there = factor.on("emulator:check")
    there(a, y, size)
    np.testing.assert_allclose(y, np.linalg.cholesky(a.astype(np.float64)), rtol=1e-3, atol=1e-4)
    compiled = there.compiled(a, y, size)
    assert compiled.threads == 32 * warps * compiled.programs_per_cta


@tilec.kernel(grid=lambda x: x.shape[0])
def compare(x: tl.array, y: tl.array, z: tl.array, TILES: tl.const):
    """y[b], z[b]: of each two rows of x[b], the sums of two sizes of what is between them."""
    b, i = tl.program_id(0), tl.arange(16)
    rows = [tl.load(x, (b, 0, 128 * n), (16, 128)) for n in tl.static_range(TILES)]
    for j in tl.range(16):
        one, two = tl.zeros((16,), tl.f32), tl.zeros((16,), tl.f32)
        for row in rows:
            own = tl.sum(tl.where((i == j)[:, None], row, 0.0), 0)
            one += tl.sum(tl.abs(row - own[None, :]), 1)
            two += tl.sum((row - own[None, :]) * (row - own[None, :]), 1)
        tl.store(y, (b, 0, j), one[:, None])
        tl.store(z, (b, 0, j), two[:, None])


@pytest.mark.parametrize(("tiles", "warps"), [(2, 2), (6, 4)])
def test_what_a_loop_holds_fits_into_registers(tiles: int, warps: int) -> None:
    """However often it meets: 12288 words are 96 for each thread of four warps."""
    arrays = ["x:f32[?,16,768;12288,768,1]", *(f"{n}:f32[?,16,16;256,16,1]" for n in "yz")]
    kernel = compare.compile(arrays, {"TILES": tiles}, target="sm_90a")
    assert kernel.threads == 32 * warps * kernel.programs_per_cta


@tilec.kernel(grid=lambda x: x.shape[0])
def halve(x: tl.array, y: tl.array, steps: tl.i32, N: tl.const):
    """y: each row less what makes its positive elements add up to 1, by halving an interval."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf)
    high = tl.max(v)
    low = high - 1
    for _ in tl.range(steps):
        middle = (low + high) * 0.5
        more = tl.sum(tl.maximum(v - middle, 0.0)) > 1
        low = tl.where(more, middle, low)
        high = tl.where(more, high, middle)
    tl.store(y, (row, 0), tl.maximum(v - low, 0.0))


def test_what_meets_once_an_iteration_has_twice_the_warps() -> None:
    x = np.random.default_rng().standard_normal((3, 1000), dtype=np.float32)
    y = np.full_like(x, np.nan)
    there = halve.on("emulator:check")
    there(x, y, 24, 1000)
    np.testing.assert_allclose(y.sum(1), 1, rtol=0, atol=1e-3)
    assert there.compiled(x, y, 24, 1000).threads == 64


def _segmented(flag, value, other_flag, other):
    return flag | other_flag, tl.where(other_flag != 0, other, value + other)


@tilec.kernel(grid=lambda x: x.shape[0])
def add_segments(x: tl.array, flags: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    flag, value = tl.load(flags, (row, 0), N).to(tl.i32), tl.load(x, (row, 0), N)
    _, sums = tl.associative_scan((flag, value), 0, _segmented)
    tl.store(y, (row, 0), sums)


def test_scans_of_several_numbers_have_more_warps() -> None:
    rng = np.random.default_rng()
    x = rng.standard_normal((2, 3000), dtype=np.float32)
    flags = (rng.random(x.shape) < 0.03).astype(np.int8)
    y, expected = np.full_like(x, np.nan), np.zeros(x.shape)
    there = add_segments.on("emulator:check")
    there(x, flags, y, 3000)
    for i in range(3000):
        kept = expected[:, i - 1] * (flags[:, i] == 0) if i else 0
        expected[:, i] = kept + x[:, i]
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-4)
    assert there.compiled(x, flags, y, 3000).threads == 256


@pytest.mark.parametrize(
    ("dtype", "shape", "warps", "most"),
    [
        ("bf16", (32768, 8192), 8, 0),
        ("bf16", (1000, 8192), 16, 16),
        ("f32", (32745, 4099), 8, 0),
        ("f16", (65489, 4099), 4, 0),
        ("f16", (5971, 5120), 4, 0),
    ],
)
def test_long_rows_that_are_scaled(
    dtype: str, shape: tuple[int, int], warps: int, most: int
) -> None:
    """Few rows have twice as many warps as many."""
    step = ":8" if shape[1] % 8 == 0 else ""
    matrix, row = f"{dtype}[?,?{step};?{step},1]", f"{dtype}[?{step};1]"
    arrays = [f"x:{matrix}", f"weight:{row}", f"bias:{row}", f"y:{matrix}", "eps:f32"]
    sizes = {"x": shape, "y": shape, "weight": shape[1:], "bias": shape[1:]}
    kernel = layer_norm.compile(arrays, {"N": shape[1]}, target="sm_90a", sizes=sizes)
    assert (kernel.threads, kernel.suits[1]) == (32 * warps, most)


@tilec.kernel(grid=lambda x, M, N: (tl.cdiv(x.shape[1], N), tl.cdiv(x.shape[0], M)))
def average(x: tl.array, y: tl.array, M: tl.const, N: tl.const):
    """y: the mean of each M rows of x."""
    n, m = tl.program_id(0) * N, tl.program_id(1)
    tile = tl.load(x, (m * M, n), (M, N)).to(tl.f32)
    tl.store(y, (m, n), (tl.sum(tile, 0) / M).to(y.dtype))


@pytest.mark.parametrize(("rows", "warps"), [(16, 1), (32, 1), (64, 4), (128, 8)])
def test_a_warp_holds_what_meets_across_where_it_can(rows: int, warps: int) -> None:
    x = np.random.default_rng().standard_normal((256, 128)).astype(np.float16)
    y = np.full((256 // rows, 128), np.nan, np.float16)
    there = average.on("emulator:check")
    there(x, y, rows, 64)
    expected = x.astype(np.float64).reshape(-1, rows, 128).mean(1)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-3)
    compiled = there.compiled(x, y, rows, 64)
    assert compiled.threads == 32 * warps * compiled.programs_per_cta
    # What loads 4 KB at once gains nothing by sharing a CTA.
    assert compiled.programs_per_cta == (8 if rows == 16 else 1)


@tilec.kernel(grid=lambda x, N: x.shape[0] * tl.cdiv(x.shape[1], N))
def scale_and_shift(
    x: tl.array, a: tl.array, b: tl.array, y: tl.array, N: tl.const, NUMBERS: tl.const
):
    """y = a * x + b, or a * x, by rows."""
    blocks = tl.cdiv(x.shape[1], N)
    row, start = tl.program_id(0) // blocks, tl.program_id(0) % blocks * N
    v = tl.load(x, (row, start), N).to(tl.f32) * tl.load(a, row, ())
    if NUMBERS > 1:
        v += tl.load(b, row, ())
    tl.store(y, (row, start), v.to(y.dtype))


@pytest.mark.parametrize(("numbers", "warps"), [(1, 8), (2, 4)])
def test_threads_that_load_several_numbers_have_more_elements(numbers: int, warps: int) -> None:
    specs = ["x:bf16[?,?:8;?:8,1]", "a:f32[?]", "b:f32[?]", "y:bf16[?,?:8;?:8,1]"]
    constants = {"N": 2048, "NUMBERS": numbers}
    assert scale_and_shift.compile(specs, constants, target="sm_90a").threads == 32 * warps


def _log_of_sum(a: Any, b: Any) -> Any:
    most = tl.maximum(a, b)
    return most + tl.log(1 + tl.exp(tl.minimum(a, b) - most))


@tilec.kernel(grid=lambda x: x.shape[0])
def running_logs(x: tl.array, y: tl.array, N: tl.const):
    """y[i, j]: the logarithm of the sum of exp(x[i, :j + 1])."""
    row = tl.program_id(0)
    tl.store(y, (row, 0), tl.associative_scan(tl.load(x, (row, 0), N), 0, _log_of_sum))


@pytest.mark.parametrize(
    ("tile", "rows", "warps"), [(1024, 322, 4), (4096, 107, 16), (1024, 3000, 2), (1024, None, 4)]
)
def test_scans_in_costly_steps_have_more_threads_where_programs_are_few(
    tile: int, rows: int | None, warps: int
) -> None:
    sizes = None if rows is None else dict.fromkeys("xy", (rows, tile))
    specs = ["x:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]"]
    kernel = running_logs.compile(specs, {"N": tile}, target="sm_90a", sizes=sizes)
    assert kernel.threads == 32 * warps


@tilec.kernel(grid=lambda x: x.shape[0])
def running_sums(x: tl.array, y: tl.array, N: tl.const):
    """Running sums of each row."""
    row = tl.program_id(0)
    tl.store(y, (row, 0), tl.cumsum(tl.load(x, (row, 0), N).to(tl.f32)).to(y.dtype))


@pytest.mark.parametrize(
    ("dtype", "tile", "warps"),
    [("f16", 1024, 2), ("f32", 1792, 8), ("f32", 4096, 8), ("bf16", 4096, 4), ("f32", 16384, 16)],
)
def test_a_row_that_is_scanned_has_the_warps_of_one_that_is_reduced(
    dtype: str, tile: int, warps: int
) -> None:
    specs = [f"{name}:{dtype}[?,?:8;?:8,1]" for name in "xy"]
    kernel = running_sums.compile(specs, {"N": tile}, target="sm_90a")
    assert kernel.threads == 32 * warps


@tilec.kernel(grid=lambda y, BN: (tl.cdiv(y.shape[1], BN), y.shape[0]))
def sum_segments(x: tl.array, starts: tl.array, y: tl.array, BM: tl.const, BN: tl.const):
    """y[s]: the sum of the rows of x from starts[s] to starts[s + 1]."""
    n, s = tl.program_id(0) * BN, tl.program_id(1)
    first, end = tl.load(starts, s, ()), tl.load(starts, s + 1, ())
    segment = tl.window(x, (first, 0), (end - first, x.shape[1]))
    total = tl.zeros((BN,), tl.f32)
    for m in tl.range(0, end - first, BM):
        total += tl.sum(tl.load(segment, (m, n), (BM, BN)).to(tl.f32), 0)
    tl.store(y, (s, n), total[None, :].to(y.dtype))


@pytest.mark.parametrize(
    ("dtype", "rows", "warps"), [("f16", 64, 4), ("f32", 32, 4), ("f16", 8, 1)]
)
def test_what_ends_where_memory_says_has_several_vectors_a_thread(
    dtype: str, rows: int, warps: int
) -> None:
    """Nothing of it comes ahead; in 16 and 8 warps a thread had one or two."""
    specs = [f"x:{dtype}[?,?:8;?:8,1]", "starts:i32[?]", f"y:{dtype}[?,?:8;?:8,1]"]
    kernel = sum_segments.compile(specs, {"BM": rows, "BN": 64}, target="sm_90a")
    assert kernel.threads == 32 * warps * kernel.programs_per_cta


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def halve_rows(x: tl.array, y: tl.array, B: tl.const):
    """y: the means of two by two elements."""
    i, row = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (2 * row, 2 * i), (2, 2 * B)).to(tl.f32)
    mean = tl.sum(tl.sum(tl.reshape(v, (2, B, 2)), 2), 0) * 0.25
    tl.store(y, (row, i), mean.to(y.dtype)[None, :])


@pytest.mark.parametrize(("rows", "programs"), [(16384, 8), (256, 1)])
def test_what_a_thread_reduces_alone_shares_ctas_where_there_is_much(
    rows: int, programs: int
) -> None:
    """CTAs of two warps would be begun as fast as a multiprocessor does that, not memory."""
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "xy"]
    sizes = {"x": (2 * rows, 600), "y": (rows, 300)}
    kernel = halve_rows.compile(specs, {"B": 256}, target="sm_90a", sizes=sizes, at_most=True)
    assert kernel.programs_per_cta == programs


@tilec.kernel(grid=lambda x: x.shape[0])
def softmax_row(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    e = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    e = tl.exp(e - tl.max(e))
    tl.store(y, (row, 0), (e / tl.sum(e)).to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def sum_row(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    tl.store(y, (row, 0), tl.sum(tl.load(x, (row, 0), N).to(tl.f32)).to(y.dtype))


@pytest.mark.parametrize(
    ("kernel", "rows", "columns", "warps"),
    [
        (softmax_row, 600, 672, 2),  # 420 instructions for a warp
        (softmax_row, 40, 672, 2),  # a multiprocessor and more for each
        (softmax_row, 600, 1024, 4),
        (softmax_row, 600, 296, 1),
        (softmax_row, 1000, 672, 1),
        (sum_row, 600, 672, 1),
    ],
)
def test_more_warps_where_schedulers_have_one_or_two(
    kernel: Any, rows: int, columns: int, warps: int
) -> None:
    """Up to five programs a multiprocessor, of those whose threads compute much."""
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "xy"]
    sizes = dict.fromkeys("xy", (rows, columns))
    options = {"target": "sm_90a", "sizes": sizes, "at_most": True}
    found = kernel.compile(specs, {"N": columns}, **options)
    assert found.threads == 32 * warps * found.programs_per_cta


def test_a_kernel_for_any_number_of_rows_says_that_few_want_another() -> None:
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "xy"]
    for kernel, columns, fewest in (
        (softmax_row, 672, 6),
        (softmax_row, 296, 0),
        (sum_row, 672, 0),
    ):
        found = kernel.compile(specs, {"N": columns}, target="sm_90a")
        assert found.threads == 32 * found.programs_per_cta
        assert found.suits[0] == fewest


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def blur(x: tl.array, y: tl.array, COSTLY: tl.const, BM: tl.const = 16, BN: tl.const = 64):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
    for at in ((m - 1, n), (m + 1, n), (m, n - 1), (m, n + 1)):
        total += tl.load(x, at, (BM, BN), padding=1).to(tl.f32)
    for _ in tl.static_range(COSTLY):
        total = tl.erf(total)
    tl.store(y, (m, n), total.to(y.dtype))


@pytest.mark.parametrize(("side", "warps", "most"), [(500, 8, 2), (1000, 4, 16), (9001, 4, 0)])
def test_each_number_of_programs_has_its_kernel(side: int, warps: int, most: int) -> None:
    """Few have more warps for what is costly, many have code of their own at the edges."""
    specs, sizes = ["x:f16[?,?]", "y:f16[?,?]"], dict.fromkeys("xy", (side, side))
    options = {"target": "sm_90a", "sizes": sizes, "at_most": True}
    kernel = blur.compile(specs, {"COSTLY": 12}, **options)
    assert (kernel.threads, kernel.suits) == (32 * warps, (0, most))
    (bounds,) = (e["chosen"] for e in kernel.report["decisions"] if e["about"] == "bounds")
    assert bounds.startswith("tested by all" if most else "not tested")
