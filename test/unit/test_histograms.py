"""Histograms on the emulator against NumPy's bincount."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from emulated import array_type, flatten, lower, random_layout, run, seed_of, tile_type
from target_names import MAIN
from test_reductions import DTYPES, load_text, store_text

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.layout import Layout, parse_layout
from tilec.hardware.target import find_target
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator import load


def counted(values: np.ndarray, bins: int) -> np.ndarray:
    """What a histogram counts of these."""
    return np.bincount(values[(values >= 0) & (values < bins)].astype(np.int64), minlength=bins)


def hot_values(generator: np.random.Generator, shape: tuple[int, ...], bins: int) -> np.ndarray:
    """Half of them one bin, the others anywhere, some outside on both sides."""
    values = generator.integers(-1 - bins // 4, bins + bins // 4 + 2, shape)
    return np.where(generator.random(shape) < 0.5, bins // 2, values)


def histogram(shape: Sequence[int], element: str, bins: int, *layouts: Layout) -> str:
    """h = the histogram of x where m is not 0, of tiles in (values, result) layouts."""
    (values, result), flags = layouts, tile_type(shape, "i8", layouts[0])
    data, mask = tile_type(shape, element, values), tile_type(shape, "i1", values)
    array, bytes_ = array_type(len(shape), element), array_type(len(shape), "i8")
    return f"""
func.func @k(%x: {array}, %m: {bytes_}, %h: {array_type(1, "i32")}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, element, values, "%v", "%x", "0")}
  {load_text(shape, "i8", values, "%flag", "%m")}
  %zero = arith.constant dense<0> : {flags}
  %ok = arith.cmpi ne, %flag, %zero : {flags}
  %r = "tile.histogram"(%v, %ok) : ({data}, {mask}) -> {tile_type((bins,), "i32", result)}
  {store_text((bins,), "i32", result, "%r", "%h")}
  return
}}"""


@pytest.mark.parametrize(
    ("shape", "element", "bins", "num_warps"),
    [
        ((1000,), "i32", 1, 4),
        ((5, 37), "i64", 7, 2),
        ((17,), "i16", 300, 8),
        ((64, 9), "i32", 1000, 4),
        ((3, 4, 11), "i8", 100, 1),
        ((400,), "i8", 200, 4),  # more bins than an i8 can number
    ],
)
def test_histogram(shape: tuple[int, ...], element: str, bins: int, num_warps: int) -> None:
    """In layouts with copies and phantoms (which hold 0); beyond 32 bits nothing counts."""
    seed = seed_of(shape, bins)
    rng, generator = random.Random(seed), np.random.default_rng(seed)
    layouts = [random_layout(rng, sizes, num_warps) for sizes in (shape, (bins,))]
    x = hot_values(generator, shape, bins)
    if element == "i64":
        x[generator.random(shape) < 0.2] += 1 << 32
    x = x.astype(DTYPES[element])
    mask = (generator.random(shape) < 0.8).astype(np.int8)
    h = np.full(bins, -1, np.int32)
    run(histogram(shape, element, bins, *layouts), [x, mask, h], num_warps=num_warps)
    np.testing.assert_array_equal(h, counted(x[mask != 0], bins))


@pytest.mark.parametrize(("sync", "access"), [(0, "zeros"), (1, "counts")])
def test_races_without_a_sync_are_found(sync: int, access: str) -> None:
    """Between the zeros and the counting, and between that and the sums."""
    straight = parse_layout("T(64):(1@0) V(2):(64@0)")
    ptx, shared = lower(histogram((128,), "i32", 128, straight, straight), num_warps=2)
    lines = ptx.splitlines()
    syncs = [number for number, line in enumerate(lines) if "bar.sync" in line]
    assert len(syncs) == 2
    del lines[syncs[sync]]
    x = np.random.default_rng(0).integers(0, 128, 128).astype(np.int32)
    arguments = flatten([x, np.ones(128, np.int8), np.zeros(128, np.int32)])
    result = load("\n".join(lines)).run("k", 1, 64, arguments, shared_bytes=shared, mode="check")
    assert any("race" in str(finding) for finding in result.findings), access


@tilec.kernel(grid=(3,))
def count(x: tl.array, total: tl.array, B: tl.const, N: tl.const):
    counts = tl.zeros(N, tl.i32)
    for start in tl.range(tl.program_id(0) * B, x.shape[0], 3 * B):
        counts += tl.histogram(tl.load(x, start, B, padding=-1), N)
    tl.atomic_add(total, tl.arange(N), counts)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize(("dtype", "bins"), [(np.int32, 300), (np.int16, 2000)])
def test_counts_of_many_tiles(
    monkeypatch: pytest.MonkeyPatch, target: str, dtype: type, bins: int
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = hot_values(np.random.default_rng(bins), (2001,), bins).astype(dtype)
    total = np.zeros(bins, np.int32)
    count.check(x, total, B=250, N=bins)
    np.testing.assert_array_equal(total, counted(x, bins))


@tilec.kernel(grid=(1,))
def count_along(x: tl.array, sums: tl.array, total: tl.array, B: tl.const, N: tl.const):
    """`sums` after each tile and before it, which are read while `total` is not."""
    counts, backward = tl.zeros(N, tl.i32), tl.full((N,), 7, tl.i32)
    before = tl.zeros(N, tl.i32)
    for i in tl.range(3):
        tile = tl.load(x, i * B, B)
        tl.store(sums, (3 + i, 0), before[None])
        before += tl.histogram(tile + 1, N)
        counts += tl.histogram(tile, N)
        backward = tl.histogram(N - 1 - tile, N) + backward
        tl.store(sums, (i, 0), counts[None])
    tl.store(total, 0, backward)


def test_sums_that_are_read_between_tiles() -> None:
    x = hot_values(np.random.default_rng(3), (300,), 40).astype(np.int32)
    sums, total = np.zeros((6, 40), np.int32), np.zeros(40, np.int32)
    count_along.check(x, sums, total, B=100, N=40)
    behind = [counted(x[: 100 * i], 40) for i in (1, 2, 3)]
    before = [counted(x[: 100 * i] + 1, 40) for i in range(3)]
    np.testing.assert_array_equal(sums, [*behind, *before])
    np.testing.assert_array_equal(total, 7 + counted(39 - x, 40))


@tilec.kernel(grid=(1,))
def of_other_kinds(x: tl.array, out: tl.array):
    v = tl.load(x, (0, 0), (6, 5))
    tl.store(out, 0, tl.histogram(v > 3, 2))
    tl.store(out, 2, tl.histogram((tl.program_id(0) + tl.arange(40)) * 3, 10))
    tl.store(out, 12, tl.histogram(v, 8, mask=tl.arange(5)[None, :] > 1))
    tl.store(out, 20, tl.histogram(v, 8, mask=False))


def test_truths_positions_and_masks_that_broadcast() -> None:
    x = np.random.default_rng(1).integers(0, 8, (6, 5)).astype(np.int32)
    out = np.full(28, -1, np.int32)
    of_other_kinds.check(x, out)
    parts = [
        counted((x > 3).astype(int), 2),
        counted(3 * np.arange(40), 10),
        counted(x[:, 2:], 8),
        np.zeros(8),
    ]
    np.testing.assert_array_equal(out, np.concatenate(parts))


@tilec.kernel(grid=(1,))
def of_a_turned_mask(x: tl.array, ok: tl.array, out: tl.array):
    mask = tl.load(ok, (0, 0), (40, 64)).T != 0
    tl.store(out, 0, tl.histogram(tl.load(x, (0, 0), (64, 40)), 16, mask))


def test_values_and_mask_in_two_layouts() -> None:
    generator = np.random.default_rng(3)
    x = generator.integers(0, 16, (64, 40)).astype(np.int32)
    ok = generator.integers(0, 2, (40, 64)).astype(np.int32)
    out = np.zeros(16, np.int32)
    of_a_turned_mask.check(x, ok, out)
    np.testing.assert_array_equal(out, counted(x[ok.T != 0], 16))


def compiled(bins: int, target: str) -> CompiledKernel:
    """`count` of that many bins."""
    specs = ["x:i32[?:4]", "total:i32[?]"]
    return count.compile(specs, {"B": 1024, "N": bins}, target=target)


@pytest.mark.parametrize("target", MAIN)
def test_ptxas_takes_it(target: str) -> None:
    assemble(compiled(256, target).ptx, find_target(target))


def test_two_syncs_an_iteration_and_one_atomic_an_element() -> None:
    ptx = compiled(256, "sm_80").ptx
    assert ptx.count("bar.sync") == 2
    warps = compiled(256, "sm_80").threads // 32
    assert ptx.count("red.relaxed.cta.shared.add.u32") == 1024 // (32 * warps)


def test_bins_that_shared_memory_does_not_hold() -> None:
    assert compiled(8192, "sm_80").shared_bytes == 4 * 8192
    with pytest.raises(CompileError, match="shared memory") as error:
        compiled(65536, "sm_80")
    assert "262144 bytes" in str(error.value)


@tilec.kernel(num_warps=4, grid=(1,))
def written_out(x: tl.array, out: tl.array, ROWS: tl.const):
    rows = gpu.layout("T(128):(1@1) V(4):(1@0)")
    buffer = gpu.alloc((ROWS, 128), tl.i32, gpu.padded((ROWS, 128)))
    buffer.store(gpu.zeros((ROWS, 128), tl.i32, rows))
    gpu.sync()
    v = gpu.load(x, (0,), (512,), gpu.blocked((512,), warps=4, width=4))
    gpu.buffer_count(v, v != 7, buffer)
    gpu.sync()
    tl.store(out, 0, tl.sum(buffer.load(rows), 0))


@pytest.mark.parametrize("rows", [1, 4])
def test_counting_in_rows_of_the_authors(rows: int) -> None:
    x = hot_values(np.random.default_rng(rows), (512,), 128).astype(np.int32)
    out = np.zeros(128, np.int32)
    written_out.check(x, out, ROWS=rows)
    np.testing.assert_array_equal(out, counted(x[x != 7], 128))


def test_rows_that_warps_do_not_fill() -> None:
    with pytest.raises(CompileError, match="4 warps count in a buffer of 2 rows, not 1 or 4"):
        written_out.compile(["x:i32[?]", "out:i32[?]"], {"ROWS": 2}, target="sm_80")


@tilec.kernel(num_warps=4, grid=(2,), persistent=True)
def of_products(a: tl.array, b: tl.array, total: tl.array):
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, 96, 32):
        at = tl.program_id(0) * 64
        acc = tl.dot(tl.load(a, (at, k), (64, 32)), tl.load(b, (k, 0), (32, 64)), acc)
    tl.atomic_add(total, tl.arange(100), tl.histogram(acc.to(tl.i32), 100))


@pytest.mark.parametrize("target", MAIN)
def test_counts_of_products_beside_roles(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    generator = np.random.default_rng(2)
    a, b = (generator.integers(0, 3, s).astype(np.float16) for s in ((128, 96), (96, 64)))
    total = np.zeros(100, np.int32)
    of_products.check(a, b, total)
    product = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    np.testing.assert_array_equal(total, counted(product, 100))
