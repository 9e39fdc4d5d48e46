"""Products of products: the result of one is an operand, or both, of the next."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl

KINDS = {"tf32": np.float32, "f16": np.float16}


@tilec.kernel(grid=(1,))
def chain(x: tl.array, y: tl.array, FORM: tl.const, PRECISION: tl.const):
    a = tl.load(x, (0, 0), (64, 64))
    first = tl.dot(a, a, precision=PRECISION)
    b = first.to(x.dtype)
    if FORM == "twice":
        first = tl.dot(b, b, precision=PRECISION)
    if FORM == "transposed":
        first = tl.dot(b, b.T, precision=PRECISION)
    if FORM == "onto itself":
        first = tl.dot(b, a, first, precision=PRECISION)
    if FORM == "loaded":
        first = tl.dot(b, a, a.to(tl.f32), precision=PRECISION)
    tl.store(y, (0, 0), first)


@pytest.mark.share(2)
@pytest.mark.parametrize("form", ["twice", "transposed", "onto itself", "loaded"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_product_of_a_product(
    target: str, kind: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = (np.random.default_rng(8).standard_normal((64, 64)) * 0.2).astype(KINDS[kind])
    y = np.zeros((64, 64), np.float32)
    chain.check(x, y, form, "tf32" if kind == "tf32" else "ieee")
    a = x.astype(np.float64)
    b = a @ a
    right = {"twice": b, "transposed": b.T}.get(form, a)
    added = {"onto itself": b, "loaded": a}.get(form, 0)
    np.testing.assert_allclose(y, b @ right + added, atol=0.02 * abs(b).max())


@tilec.kernel(grid=lambda y: tl.cdiv(y.shape[0], 128))
def weighted(w: tl.array, v: tl.array, x: tl.array, y: tl.array):
    """y = the sum over blocks of x (w v), each block's; w v is multiplied in front of the loop."""
    m = tl.program_id(0) * 128
    first = tl.dot(tl.load(w, (0, 0), (32, 128)), tl.load(v, (0, 0), (128, 64)))
    right = tl.clamp(first, -2, 2).to(x.dtype)
    acc = tl.zeros((128, 64), first.dtype)
    for k in tl.range(0, x.shape[1], 32):
        acc = tl.dot(tl.load(x, (m, k), (128, 32)), right, acc)
    tl.store(y, (m, 0), acc)


@pytest.mark.parametrize("dtype", [np.int8, np.float16])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_product_in_front_of_a_loop(
    target: str, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy fills what the loop's products read on their right."""
    monkeypatch.setenv("TILEC_TARGET", target)
    draw = np.random.default_rng(9).integers
    w, v, x = (draw(-1, 2, size).astype(dtype) for size in ((32, 128), (128, 64), (200, 320)))
    y = np.zeros((200, 64), np.int32 if dtype is np.int8 else np.float32)
    weighted.check(w, v, x, y)
    right = np.clip(w.astype(int) @ v.astype(int), -2, 2)
    blocks = x.astype(int).reshape(200, 10, 32).sum(axis=1)
    np.testing.assert_array_equal(y, blocks @ right)
