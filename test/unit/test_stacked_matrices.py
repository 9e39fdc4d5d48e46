"""Matrices of a stack, loaded and stored with a dimension of 1: as if they were an array's own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned


@tilec.kernel(grid=lambda c: (tl.cdiv(c.shape[1], 64), tl.cdiv(c.shape[2], 64), c.shape[0]))
def products(a: tl.array, b: tl.array, c: tl.array):
    """c[z] = a[z] @ b[:, z]."""
    m, n, z = tl.program_id(0) * 64, tl.program_id(1) * 64, tl.program_id(2)
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[2], 32):
        x = tl.reshape(tl.load(a, (z, m, k), (1, 64, 32)), (64, 32))
        y = tl.reshape(tl.load(b, (k, z, n), (32, 1, 64)), (32, 64))
        acc = tl.dot(x, y, acc)
    tl.store(c, (z, m, n), acc.to(c.dtype)[None, :, :])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_products_of_stacks(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(3)
    a, b = (
        rng.integers(-3, 4, size).astype(ml_dtypes.bfloat16)
        for size in ((3, 70, 328), (328, 3, 104))
    )
    c = poisoned((3, 70, 104), np.float32)
    products.check(a, b, c)
    wide = [x.astype(np.float32) for x in (a, b)]
    np.testing.assert_array_equal(c, np.einsum("zmk,kzn->zmn", *wide))


def test_tensor_copies_bring_and_store_them() -> None:
    specs = [f"{name}:bf16[?,?,?:8;?:8,?:8,1]" for name in "abc"]
    decisions = products.compile(specs, target="sm_90a").report["decisions"]
    copies = [d["chosen"] for d in decisions if d["about"] == "asynchronous copy"]
    assert copies == ["TMA", "TMA"]
    roles = [d["chosen"] for d in decisions if d["about"] == "warp specialisation"]
    assert [role.startswith("1 loading warp") for role in roles] == [True]
    assert [d["chosen"] for d in decisions if d["about"] == "tensor store"] == ["TMA"]
