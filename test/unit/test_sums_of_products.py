"""`acc += a @ b` compiles to what `acc = tl.dot(a, b, acc)` does, and is right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from target_names import MAIN

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    ADDED: tl.const,
    BM: tl.const = 64,
    BN: tl.const = 64,
    BK: tl.const = 32,
):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x, y = tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN))
        if ADDED:
            acc += x @ y
        else:
            acc = tl.dot(x, y, acc)
    tl.store(c, (m, n), acc)


@pytest.mark.parametrize("target", MAIN)
def test_added_products(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((72, 104), (104, 40)))
    c = np.full((72, 40), np.nan, np.float32)
    matmul.on("emulator")(a, b, c, ADDED=True)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=1e-4, atol=1e-3)
    texts = [matmul.compiled(a, b, c, ADDED=added).ptx for added in (True, False)]
    first, second = (re.sub(r"\t\.loc\t.*\n", "", text) for text in texts)
    assert first == second
