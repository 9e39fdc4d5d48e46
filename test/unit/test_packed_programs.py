"""Programs of one warp, several in a CTA (pass pack-programs): numbers, and launches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.rms_norm import rms_norm
from tilec.examples.running import poisoned
from tilec.examples.softmax import softmax
from tilec.executable.kernel import CompiledKernel
from tilec.passes.pack_programs import REACHED, WARPS
from tilec.runtime.emulator_device import RESIDENT_CTAS

TARGETS = ["sm_80", "sm_90a", "sm_100a"]
THREE_ROUNDS = 3 * WARPS * RESIDENT_CTAS - 5
"""Programs: the emulator's CTAs take three rounds of them, the last one not whole."""
ROWS = ["x:f32[?,?;?,1]", "y:f32[?,?;?,1]"]


@tilec.kernel(grid=lambda x: (x.shape[2], x.shape[1], x.shape[0]))
def places(x: tl.array, y: tl.array, N: tl.const = 32):
    """Running sums, and where each program is in its grid."""
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    v = tl.cumsum(tl.load(x, (k, j, i, 0), N), 0)
    tl.store(y, (k, j, i, 0), v + (100 * i + 10 * j + k).to(tl.f32) + tl.num_programs(1))


@tilec.kernel(grid=lambda x: (x.shape[0], 3))
def counted(x: tl.array, total: tl.array, N: tl.const = 64):
    """Sums of rows, of each three times, by programs that do all the same along y."""
    tl.atomic_add(total, tl.program_id(0), tl.sum(tl.load(x, (tl.program_id(0), 0), N)))


@tilec.kernel(grid=lambda n: n)
def counts_of_rows(x: tl.array, y: tl.array, n: tl.i32, N: tl.const = 128):
    """Counts of the values of a row, through shared memory, of so many rows."""
    row = tl.program_id(0)
    tl.store(y, (row, 0), tl.histogram(tl.load(x, (row, 0), N), 32))


@tilec.kernel(grid=lambda y: y.shape[0])
def products_of_rows(
    starts: tl.array, columns: tl.array, values: tl.array, x: tl.array, y: tl.array,
    B: tl.const = 32,
):  # fmt: skip
    """y = a x of a sparse matrix a, whose row i is from starts[i] to starts[i + 1]."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        there = at + tl.arange(B) < end
        column = tl.load(columns, at, B)
        acc += tl.where(there, tl.load(values, at, B) * tl.gather(x, column, mask=there), 0.0)
    tl.store(y, row, tl.sum(acc))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 64), (THREE_ROUNDS, 50)])
def test_rows(target: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)
    y = poisoned(shape, np.float32)
    assert softmax.compile(ROWS, {"N": 64}, target=target).programs_per_cta == WARPS
    softmax.check(x, y, N=64)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 29, 32), (1, 1, 1, 20), (5, 2, 1, 32), (7, 1, 13, 32)])
def test_three_axes(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)
    y = poisoned(shape, np.float32)
    places.check(x, y)
    k, j, i = np.ogrid[: shape[0], : shape[1], : shape[2]]
    at = (100 * i + 10 * j + k + shape[1])[..., None]
    np.testing.assert_allclose(y, np.cumsum(x, 3) + at, rtol=1e-5, atol=1e-4)


def test_axes_that_nobody_looks_at() -> None:
    x = np.random.default_rng(5).integers(-9, 9, (THREE_ROUNDS, 64)).astype(np.float32)
    total = np.zeros(len(x), np.float32)
    counted.check(x, total)
    np.testing.assert_array_equal(total, 3 * x.sum(1))


@pytest.mark.parametrize("target", TARGETS)
def test_each_has_its_part_of_shared_memory(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(7).integers(0, 32, (THREE_ROUNDS, 128), dtype=np.int32)
    y = poisoned((len(x), 32), np.int32)
    counts_of_rows.demanding(num_warps=1).check(x, y, len(x))
    expected = [np.bincount(row, minlength=32) for row in x]
    np.testing.assert_array_equal(y, expected)
    made = counts_of_rows.demanding(num_warps=1).compile(
        ["x:i32[?,128]", "y:i32[?,32]", "n:i32"], {"N": 128}, target=target
    )
    assert made.programs_per_cta == WARPS
    assert made.shared_bytes % (128 * WARPS) == 0
    assert made.shared_bytes > 0
    assert "bar.warp.sync" in made.ptx  # who has no program left meets nobody
    assert "bar.sync" not in made.ptx


@tilec.kernel(grid=lambda c: tl.cdiv(c.shape[0], 64))
def products(a: tl.array, b: tl.array, c: tl.array):
    """c = a b by one warp for 64 rows of a."""
    m = tl.program_id(0) * 64
    tl.store(c, (m, 0), tl.dot(tl.load(a, (m, 0), (64, 16)), tl.load(b, (0, 0), (16, 16))))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_120a"])
def test_swizzles_begin_where_each_has_its_part(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tensor store reads a buffer by the pattern of its addresses, which takes 512 bytes; the
    operands beside it fill no multiple of that."""
    monkeypatch.setenv("TILEC_TARGET", target)
    draw = np.random.default_rng(5).integers
    a, b = draw(-9, 9, (64 * 29, 24), dtype=np.int8), draw(-9, 9, (24, 24), dtype=np.int8)
    c = poisoned((len(a), 16), np.int32)
    kernel = products.demanding(num_warps=1)
    kernel.check(a, b, c)
    made = kernel.compiled(a, b, c)
    assert made.programs_per_cta == WARPS
    assert "cp.async.bulk.tensor" in made.ptx
    np.testing.assert_array_equal(c, a[:, :16].astype(int) @ b[:16, :16].astype(int))


@pytest.mark.parametrize("target", TARGETS)
def test_memory_says_how_long_each_takes(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a sparse matrix, of none to three tiles: warps of a CTA take as long as they do."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(11)
    counts = rng.integers(0, 90, THREE_ROUNDS)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    columns = rng.integers(0, 77, starts[-1], dtype=np.int32)
    values, x = (rng.standard_normal(n, dtype=np.float32) for n in (starts[-1], 77))
    y = poisoned((len(counts),), np.float32)
    assert products_of_rows.compiled(starts, columns, values, x, y).programs_per_cta == WARPS
    products_of_rows.check(starts, columns, values, x, y)
    terms = np.concatenate([values.astype(np.float64) * x[columns], [0]])
    expected = [terms[a:b].sum() for a, b in pairwise(starts)]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)


def test_more_ctas_share_programs_of_uneven_length() -> None:
    """8 times as many as run side by side, and no more than there are programs."""
    specs = ["starts:i32[?]", "columns:i32[?]", "values:f32[?]", "x:f32[?]", "y:f32[?]"]
    kernel = products_of_rows.compile(specs, target="sm_90a")
    assert kernel.rounds == 8
    assert kernel.launched((10**6, 1, 1), 1056, 132) == (8 * 1056, 1, 1)
    assert kernel.launched((20000, 1, 1), 1056, 132) == (19 * 132, 1, 1)
    assert "setp" in kernel.ptx.split("griddepcontrol.wait")[1].split("launch_dependents")[0]
    assert softmax.compile(ROWS, {"N": 64}, target="sm_90a").rounds == 1


def of_rows(index_bits: int = 32) -> CompiledKernel:
    """A kernel whose grid is the rows of an array."""
    shape = "[64,64]" if index_bits == 32 else "[?,?;?,1]"
    return softmax.compile([f"x:f32{shape}", f"y:f32{shape}"], {"N": 64}, target="sm_90a")


@pytest.mark.parametrize(
    ("programs", "ctas", "warps"),
    [
        (1, 1, 1),  # no more warps than programs
        (100, 100, 1),
        (150, 132, 2),  # first each multiprocessor gets a CTA, then that gets warps
        (1000, 132, 8),
        (1057, 264, 5),  # a second CTA for each, rather than a second round
        (9000, 1056, 8),
        (300_000, 1056, 8),  # no more CTAs than run side by side
    ],
)
def test_launches(programs: int, ctas: int, warps: int) -> None:
    grid = (programs, 1, 1)
    launched = of_rows().launched(grid, 8 * 132, 132)
    assert launched == (ctas, 1, 1)
    assert of_rows().threads_of(grid, launched) == 32 * warps


def test_programs_that_cannot_be_counted() -> None:
    """32-bit indices count through the whole grid, and once beyond it."""
    narrow = of_rows()
    assert narrow.most_programs <= 2**31 - 1 - REACHED
    assert narrow.counts((2**16, 2**16, 1)) > narrow.most_programs
    with pytest.raises(ValueError, match="more programs than CTAs can count"):
        narrow.launched((2**30, 2, 1), 1056, 132)


def test_the_report_says_so() -> None:
    decisions = of_rows().report["decisions"]
    assert [d["chosen"] for d in decisions if d["about"] == "programs in a CTA"] == ["8"]
    alone = rms_norm.demanding(persistent=False).compile(
        ["x:bf16[?,256]", "weight:bf16[256]", "y:bf16[?,256]", "scales:f32[?]", "eps:f32"],
        {"N": 256},
        target="sm_90a",
    )
    assert alone.programs_per_cta == 1
