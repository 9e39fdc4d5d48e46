"""Products that a loop scales and adds up, two of them in flight: right for any number of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl

STEP = 64


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM), num_warps=4)
def scaled_products(
    a: tl.array, b: tl.array, scales: tl.array, c: tl.array, steps: tl.array, BM: tl.const = 64
):
    """c = the sum of a's and b's products by blocks of STEP of k, each times a scale a row; of the
    first `steps` blocks."""
    m = tl.program_id(0) * BM
    acc = tl.zeros((BM, 32), tl.f32)
    for block in tl.range(tl.load(steps, (tl.program_id(0),), ())):
        k = block * STEP
        product = tl.dot(tl.load(a, (m, k), (BM, STEP)), tl.load(b, (k, 0), (STEP, 32)))
        acc += product * tl.load(scales, (m, block), (BM, 1))
    tl.store(c, (m, 0), acc.to(c.dtype))


@pytest.mark.parametrize("mode", ["emulator:check", "emulator:late"])
def test_any_number_of_products_is_added_up(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None to six, and as many as wrap the ring; scales differ from block to block."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    steps = np.array([0, 1, 2, 3, 17, 4, 5, 6], np.int32)
    rng, rows, most = np.random.default_rng(2), 64 * len(steps) - 5, int(steps.max())
    a = rng.standard_normal((rows, most * STEP)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((most * STEP, 32)).astype(ml_dtypes.bfloat16)
    scales = rng.standard_normal((rows, most), np.float32)
    c = np.full((rows, 32), np.nan, np.float32)
    kernel = scaled_products.on(mode)
    kernel(a, b, scales, c, steps)
    told = {
        e["about"]: e["chosen"] for e in kernel.compiled(a, b, scales, c, steps).report["decisions"]
    }
    assert told["matrix instructions"] == "a product under the next one"
    assert told["loads"] == "an iteration ahead"
    parts = a.astype(float).reshape(rows, most, STEP), b.astype(float).reshape(most, STEP, 32)
    blocks = np.einsum("rbk,bkn->rbn", *parts) * scales[:, :, None]
    counted = np.repeat(steps, 64)[:rows]
    expected = np.array([row[:n].sum(0) for row, n in zip(blocks, counted, strict=True)])
    np.testing.assert_allclose(c, expected, rtol=0, atol=2e-4)
