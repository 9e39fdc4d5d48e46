"""Rows that begin at multiples of 8 or 4 bytes: accesses are as wide as that, and copies fly."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tilec.examples.cross_entropy import cross_entropy, reference
from tilec.examples.matmul import matmul
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16
COLUMNS = {16: 296, 8: 300, 4: 298, 2: 299}
"""By the bytes that rows of bf16 begin at multiples of."""


@pytest.mark.parametrize("wide", COLUMNS)
def test_losses_of_rows(wide: int) -> None:
    rng = np.random.default_rng(wide)
    z = rng.standard_normal((5, COLUMNS[wide])).astype(BF16)
    labels = rng.integers(0, z.shape[1], 5, np.int32)
    losses, gradient = reference(z, labels, 0.0)
    found = poisoned((5,), np.float32)
    report = cross_entropy.report(z, labels, found, 0.0, B=256)
    reasons = r"access: (\d+)-byte (?:loads|stores) \((?:aligned|the stride)"
    assert set(map(int, re.findall(reasons, report))) == {wide}
    cross_entropy.check(z, labels, found, 0.0, B=256)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    np.testing.assert_allclose(z.astype(np.float64), gradient, atol=8e-3)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("wide", [8, 4])
def test_operands_of_a_product(wide: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng, k = np.random.default_rng(wide), COLUMNS[wide] // 2 // wide * wide + wide // 2
    a, b = (rng.integers(-3, 4, size).astype(BF16) for size in ((45, k), (70, k)))
    c = poisoned((45, 70), np.float32)
    tiles = {"BM": 64, "BN": 64, "BK": 32}
    report = matmul.report(a, b.T, c, **tiles)
    assert re.findall(r"asynchronous copy: cp.async of (\d+)", report) == [str(wide)] * 2
    matmul.check(a, b.T, c, **tiles)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)
