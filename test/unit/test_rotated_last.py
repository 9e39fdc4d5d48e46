"""Loops with three and more products, the last of which run in the next iteration: right for any
number of them, and refused with the reason."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl

STEP, D = 64, 32
BF16 = ml_dtypes.bfloat16


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM), num_warps=4)
def gated(
    x: tl.array,
    up: tl.array,
    gate: tl.array,
    y: tl.array,
    z: tl.array,
    steps: tl.array,
    kept: tl.array,
    BM: tl.const = 64,
    BOTH: tl.const = False,
    KEEPS: tl.const = False,
    FADES: tl.const = False,
    READ: tl.const = False,
    STAGES: tl.const = 3,
):
    """y = (x up^T * x gate^T) up of the first `steps` blocks; BOTH: z = (x up^T) gate as well;
    KEEPS: what the last product takes goes to `kept`, too.
    FADES, READ: what holds the last products back."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    acc, other = tl.zeros((BM, D), tl.f32), tl.zeros((BM, D), tl.f32)
    for block in tl.range(tl.load(steps, (tl.program_id(0),), ()), stages=STAGES):
        n = block * STEP
        tu, tg = tl.load(up, (n, 0), (STEP, D)), tl.load(gate, (n, 0), (STEP, D))
        hidden = tl.dot(tx, tu.T)
        if BOTH:
            other = tl.dot(hidden.to(x.dtype), tg, other)
        if FADES:
            acc = acc * 0.5
        both = (hidden * tl.dot(tx, tg.T)).to(x.dtype)
        if READ:
            other += tl.sum(both.to(tl.f32), 1)[:, None]
        if KEEPS:
            tl.store(kept, (m, n), both)
        acc = tl.dot(both, tu, acc)
    tl.store(y, (m, 0), acc)
    tl.store(z, (m, 0), other)


def arrays() -> list[np.ndarray]:
    """None to six blocks, and as many as wrap the ring."""
    steps = np.array([0, 1, 2, 3, 17, 4, 5, 6], np.int32)
    rng, rows, most = np.random.default_rng(7), 64 * len(steps) - 5, int(steps.max())
    x, up, gate = (
        (rng.standard_normal((size, D)) * 0.5).astype(BF16)
        for size in (rows, most * STEP, most * STEP)
    )
    y, z = np.full((2, rows, D), np.nan, np.float32)
    return [x, up, gate, y, z, steps, np.zeros((rows, most * STEP), BF16)]


def told(kernel, *args, **how) -> list[str]:
    """What the report says of matrix instructions."""
    decisions = kernel.compiled(*args, **how).report["decisions"]
    about = [one for one in decisions if one["about"] == "matrix instructions"]
    return [f"{one['chosen']} ({one['why']})" for one in about]


@pytest.mark.parametrize("mode", ["emulator:check", "emulator:late"])
@pytest.mark.parametrize("how", [{}, {"BOTH": True}, {"BOTH": True, "KEEPS": True}])
def test_any_number_of_iterations(
    mode: str, how: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three products, and four, of which two move; one operand of theirs is stored as well."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x, up, gate, y, z, steps, kept = arrays()
    kernel = gated.on(mode)
    kernel(x, up, gate, y, z, steps, kept, **how)
    many = "2 products run" if "BOTH" in how else "product runs"
    why = f"rotated (its last {many} under the next iteration's first ones)"
    assert told(kernel, x, up, gate, y, z, steps, kept, **how) == [why]
    for row, many in enumerate(steps):
        rows, blocks = slice(64 * row, 64 * row + 64), slice(0, int(many) * STEP)
        tx, tu, tg = (one.astype(np.float64) for one in (x[rows], up[blocks], gate[blocks]))
        hidden, both = tx @ tu.T, (tx @ tu.T) * (tx @ tg.T)
        np.testing.assert_allclose(y[rows], both @ tu, rtol=0, atol=0.3)
        np.testing.assert_allclose(
            z[rows], hidden @ tg if "BOTH" in how else 0 * tx, rtol=0, atol=0.3
        )
        found = kept[rows].astype(np.float64)
        assert not found[:, int(many) * STEP :].any()
        right = both if "KEEPS" in how else 0 * both
        np.testing.assert_allclose(found[:, blocks], right, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"STAGES": 2}, "a ring that it would hold longer has fewer than 3 slots"),
        ({"FADES": True}, "no product adds to what the loop carries alone"),
        ({"READ": True}, "a product takes registers that are written before the one ahead is done"),
        ({"BM": 192, "BOTH": True}, "its last products would take"),
        ({"BM": 128, "num_warps": 8}, "other warpgroups multiply while one works"),
    ],
)
def test_why_not(how: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reason is in the report."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    how = dict(how)
    warps = how.pop("num_warps", 4)
    said = told(gated.demanding(num_warps=warps).on("emulator"), *arrays(), **how)
    assert any(one.startswith(f"not rotated ({why}") for one in said), said
