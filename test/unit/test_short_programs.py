"""Programs that turn their rings a few times: how many slots those keep, and what they compute on
the emulator where rings wrap and CTAs take several programs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.passes.roles.registers import plan_roles
from tilec.passes.roles.short_programs import slots_beside

BF16 = ml_dtypes.bfloat16
KIB = 1024


@tilec.kernel(grid=lambda o: (tl.cdiv(o.shape[1], 64), tl.cdiv(o.shape[0], 64)))
def gated_output(
    q: tl.array, g: tl.array, h: tl.array, w: tl.array, v: tl.array, o: tl.array, DEPTH: tl.const
):
    """o = (q * 2 ** g) @ h + w @ v, 64 columns of w for each 64 rows, as chunks of linear attention
    have it."""
    n, m = tl.program_id(0) * 64, tl.program_id(1) * 64
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, DEPTH, 64):
        gated = tl.load(q, (m, k), (64, 64)) * tl.exp2(tl.load(g, (m, k), (64, 64)))
        acc = tl.dot(gated.to(q.dtype), tl.load(h, (k, n), (64, 64)), acc)
    acc = tl.dot(tl.load(w, (m, 0), (64, 64)), tl.load(v, (0, n), (64, 64)), acc)
    tl.store(o, (m, n), acc.to(o.dtype))


@pytest.mark.parametrize(("depth", "ctas"), [(72, 2), (200, 1)])
def test_gated_outputs(depth: int, ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two turns of a ring, and four, for which two CTAs have no room; ragged ends, more programs
    than CTAs."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rows, columns = 520, 136
    rng = np.random.default_rng(depth)
    q, g, h = (rng.standard_normal(s) for s in ((rows, depth), (rows, depth), (depth, columns)))
    w, v = rng.standard_normal((rows, 64)), rng.standard_normal((64, columns))
    q, h, w, v = (x.astype(BF16) for x in (q, h, w, v))
    o = poisoned((rows, columns), BF16)
    there = gated_output.on("emulator:check")
    arguments = (q, g.astype(np.float32), h, w, v, o)
    there(*arguments, depth)
    exact = [x.astype(np.float64) for x in (q, g, h, w, v)]
    expected = (exact[0] * 2 ** exact[1]) @ exact[2] + exact[3] @ exact[4]
    np.testing.assert_allclose(
        o.astype(np.float64), expected, rtol=0, atol=2e-2 * np.abs(expected).max()
    )
    compiled = there.compiled(*arguments, depth)
    assert decisions(compiled, "warp specialisation")[0].startswith("1 loading warp")
    assert compiled.persistent
    assert find_target("sm_90a").ctas_beside(compiled.shared_bytes) == ctas


@tilec.kernel(grid=lambda c, N: (tl.cdiv(c.shape[0], 64), tl.cdiv(c.shape[1], N)))
def scaled_sums(a: tl.array, b: tl.array, s: tl.array, c: tl.array, SCALED: tl.const, N: tl.const):
    """c = the sum of products, each times a number of its own where `SCALED`."""
    m, n = tl.program_id(0) * 64, tl.program_id(1) * N
    acc = tl.zeros((64, N), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        left, right = tl.load(a, (m, k), (64, 64)), tl.load(b, (k, n), (64, N))
        if SCALED:
            acc += tl.dot(left, right) * tl.load(s, k // 64, ())
        else:
            acc = tl.dot(left, right, acc)
    tl.store(c, (m, n), acc)


@pytest.mark.parametrize(
    ("scaled", "columns", "ctas", "registers"),
    [(True, 64, 2, None), (False, 64, 1, None), (True, 128, 2, 224)],
)
def test_threads_that_wait_for_products(
    scaled: bool, columns: int, ctas: int, registers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another CTA multiplies meanwhile, with half of the registers, which move where sums are
    large; where sums go on, one CTA's longer ring is as good."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(9)
    a, b = (
        rng.standard_normal((520, 776)).astype(BF16),
        rng.standard_normal((776, 136)).astype(BF16),
    )
    s, c = rng.random(13).astype(np.float32), poisoned((520, 136), np.float32)
    there = scaled_sums.on("emulator:check")
    there(a, b, s, c, scaled, columns)
    left = a.astype(np.float64) * (np.repeat(s, 64)[:776] if scaled else 1)
    np.testing.assert_allclose(c, left @ b.astype(np.float64), atol=1e-2)
    compiled = there.compiled(a, b, s, c, scaled, columns)
    assert find_target("sm_90a").ctas_beside(compiled.shared_bytes) == ctas
    moved = f"setmaxnreg.inc.sync.aligned.u32 {registers}"
    found = [word in compiled.ptx for word in (".maxnreg 128", moved)]
    assert found == [registers is not None] * 2
    assert (".minnctapersm 2" in compiled.ptx) == (ctas == 2)


@tilec.kernel(grid=lambda c, N: (tl.cdiv(c.shape[0], 64), tl.cdiv(c.shape[1], N)))
def rounded_products(a: tl.array, b: tl.array, c: tl.array, N: tl.const):
    """c = a @ b, of an `a` that is rounded on its way."""
    m, n = tl.program_id(0) * 64, tl.program_id(1) * N
    acc = tl.zeros((64, N), tl.f32)
    for k in tl.range(0, b.shape[0], 32):
        left, right = tl.load(a, (m, k), (64, 32)), tl.load(b, (k, n), (32, N))
        acc = tl.dot(left.to(b.dtype), right, acc)
    tl.store(c, (m, n), acc)


@pytest.mark.parametrize("columns", [128, 192])
def test_products_that_wait_for_threads(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads compute what is multiplied: two CTAs."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(19)
    a = rng.standard_normal((200, 456)).astype(np.float32)
    b = rng.standard_normal((456, 264)).astype(BF16)
    c = poisoned((200, 264), np.float32)
    there = rounded_products.on("emulator:check")
    there(a, b, c, columns)
    exact = a.astype(BF16).astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, exact, atol=1e-4)
    compiled = there.compiled(a, b, c, columns)
    assert find_target("sm_90a").ctas_beside(compiled.shared_bytes) == 2


@pytest.mark.parametrize(
    ("warps", "live", "ctas", "expected"),
    [
        (4, 150, 1, (0, 0)),
        (4, 120, 2, (0, 0)),  # 168 each, 5 warps
        (4, 150, 2, (32, 224)),  # of 128 each, 8 warps
        (4, 200, 2, (24, 232)),
        (4, 80, 3, (0, 0)),
        (4, 110, 3, (24, 136)),
        (8, 150, 1, (40, 232)),
        (8, 60, 2, (32, 104)),
    ],
)
def test_registers_of_roles(warps: int, live: int, ctas: int, expected: tuple[int, int]) -> None:
    """What a thread that loads keeps, and one that computes gets."""
    shapes = plan_roles(find_target("sm_90a"), warps, live=live, ctas=ctas)
    assert (shapes["load"].registers, shapes["compute"].registers) == expected


@pytest.mark.parametrize(
    ("ctas", "sizes", "other", "turns", "expected"),
    [
        (4, (16 * KIB, 0), 0, 1, (3, 3, 4)),  # 56 KiB each
        (4, (24 * KIB, 0), 8 * KIB, 2, (2, 2, 4)),
        (4, (24 * KIB, 0), 10 * KIB, 2, (2, 2, 3)),  # three of 75 KiB
        (4, (40 * KIB, 20 * KIB), 8 * KIB, 2, (2, 1, 3)),  # three; two with two slots each
        (2, (16 * KIB, 0), 60 * KIB, 4, None),
        (1, (8 * KIB, 0), 0, 1, None),
    ],
)
def test_slots_beside(
    ctas: int,
    sizes: tuple[int, int],
    other: int,
    turns: int,
    expected: tuple[int, int, int] | None,
) -> None:
    """Of an H200's 228 KiB, 1 KiB a CTA taken by the system."""
    assert slots_beside(ctas, sizes, other, turns, find_target("sm_90a")) == expected
