"""Loads of one element, as of a scale per tile, in loops that demand stages."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl

TARGETS = ("sm_80", "sm_90a", "sm_100a")
STEPS = 7
"""More than twice as many as a ring has slots."""


@tilec.kernel(grid=(1,))
def scaled_sum(x: tl.array, s: tl.array, y: tl.array):
    acc = tl.zeros((32, 16), tl.f32)
    for i in tl.range(0, x.shape[0], 32, stages=3):
        acc += tl.load(x, (i, 0), (32, 16)) * tl.load(s, i // 32, ()).to(tl.f32)
    tl.store(y, (0, 0), acc)


@tilec.kernel(grid=(1,))
def scaled_product(x: tl.array, w: tl.array, s: tl.array, y: tl.array, ROLES: tl.const = None):
    acc = tl.zeros((64, 64), tl.f32)
    for i in tl.range(0, x.shape[1], 32, stages=3, warp_specialize=ROLES):
        part = tl.dot(tl.load(x, (0, i), (64, 32)), tl.load(w, (i, 0), (32, 64)))
        acc += part * tl.load(s, (0, i // 32), ()).to(tl.f32)
    tl.store(y, (0, 0), acc)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_scale_a_tile(target: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((32 * STEPS, 16), np.float32)
    s, y = rng.integers(-4, 5, STEPS).astype(dtype), np.zeros((32, 16), np.float32)
    scaled_sum.check(x, s, y)
    expected = (x.reshape(STEPS, 32, 16) * s[:, None, None].astype(np.float64)).sum(0)
    np.testing.assert_allclose(y, expected, atol=1e-4)
    kernel = scaled_sum.on("emulator").compiled(x, s, y)
    copies = [e for e in kernel.report["decisions"] if e["about"] == "asynchronous copy"]
    # cp.async moves 4, 8 or 16 bytes (PTX ISA 9.0, "cp.async").
    kinds = {entry["chosen"] for entry in copies}
    assert kinds == (
        {"cp.async of 16 bytes", "cp.async of 4 bytes"}
        if dtype == "f4"
        else {"cp.async of 16 bytes", "no"}
    )


@pytest.mark.parametrize(
    ("target", "roles"),
    [*((target, None) for target in TARGETS), ("sm_90a", True), ("sm_100a", True)],
)
def test_a_scale_a_product(
    target: str, roles: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(6)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((64, 32 * STEPS), (32 * STEPS, 64)))
    s = rng.integers(-4, 5, (1, STEPS)).astype(np.float32)
    y = np.zeros((64, 64), np.float32)
    scaled_product.check(x, w, s, y, roles)
    scales = np.repeat(s[0], 32).astype(np.float64)
    np.testing.assert_allclose(y, (x * scales) @ w.astype(np.float64), atol=0.1)
