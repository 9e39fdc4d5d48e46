"""`tilec.ops.attention` and its gradients on the emulator, against float64; what they say of wrong
arguments."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from target_names import MAIN

import tilec
from tilec.runtime.errors import ArgumentError


def reference(q: Any, k: Any, v: Any, do: Any, causal: bool, window: int | None) -> list[Any]:
    """out, logs, dq, dk, dv in float64; zeros of a query that sees no key."""
    shared, scale = q.shape[1] // k.shape[1], 1 / math.sqrt(q.shape[3])
    q, do = q.astype(np.float64), do.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), shared, 1) for x in (k, v))
    i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None]
    seen = (j <= i) & (j > i - (window or q.shape[2])) if causal else np.full((1, 1), True)
    weight = np.where(seen, np.exp(q @ np.swapaxes(k, -1, -2) * scale), 0)
    total = weight.sum(-1, keepdims=True)
    weight = weight / np.where(total == 0, 1, total)
    out = weight @ v
    dscore = weight * (do @ np.swapaxes(v, -1, -2) - (out * do).sum(-1, keepdims=True)) * scale
    by_head = np.swapaxes(dscore, -1, -2) @ q, np.swapaxes(weight, -1, -2) @ do
    dk, dv = (x.reshape(len(x), -1, shared, *x.shape[2:]).sum(2) for x in by_head)
    with np.errstate(divide="ignore"):
        return [out, np.log2(total)[..., 0], dscore @ k, dk, dv]


CASES = {
    # heads, of keys; length, keys; elements of q and k, of v; causal, window
    "grouped heads, a window": (2, 1, 150, 150, 40, 24, True, 21),
    "few keys, some queries see none": (1, 1, 90, 40, 16, 16, True, 20),
    "more keys than queries": (2, 2, 21, 70, 24, 40, False, None),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("case", CASES)
def test_attention(target: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    heads, few, length, keys, width, other, causal, window = CASES[case]
    dtype = ml_dtypes.bfloat16 if target == "sm_90a" else np.float16
    rng = np.random.default_rng(heads)
    shapes = (heads, length, width), (few, keys, width), (few, keys, other), (heads, length, other)
    q, k, v, do = (rng.standard_normal((1, *shape)).astype(dtype) for shape in shapes)
    options = {"causal": causal, "window": window, "device": "emulator:check"}
    logs = np.full((1, heads, length), np.nan, np.float32)
    out = tilec.ops.attention(q, k, v, logs=logs, **options)
    gradients = tilec.ops.attention_gradients(do, q, k, v, out, logs, **options)
    right = reference(q, k, v, do, causal, window)
    blind = right[1] == -np.inf
    assert blind.any() == ("none" in case)
    assert not out[blind].any()
    np.testing.assert_allclose(logs[~blind], right[1][~blind], atol=1e-5)
    for found, exact in zip((out, *gradients), (right[0], *right[2:]), strict=True):
        assert found.dtype == dtype
        error = abs(found.astype(np.float64) - exact).max() / abs(exact).max()
        assert error < (1.5e-2 if dtype == ml_dtypes.bfloat16 else 2e-3)


def test_out_views_and_nothing_to_do() -> None:
    x = np.random.default_rng(1).standard_normal((2, 30, 3, 16)).astype(np.float16)
    q, k, v = (x[:, :, n : n + 1].transpose(0, 2, 1, 3) for n in range(3))  # of one array
    out = np.full((2, 30, 16), np.nan, np.float16)
    found = tilec.ops.attention(q, k, v, out[:, None], scale=0.25, device="emulator")
    assert np.shares_memory(found, out)
    right = reference(q, k, v, v, False, None)[0]
    np.testing.assert_allclose(out[:, None], right, atol=2e-3)
    none = tilec.ops.attention(q[:, :, :0], k, v, device="emulator")
    assert none.shape == (2, 1, 0, 16)
    blind = tilec.ops.attention(q, k[:, :, :0], v[:, :, :0], device="emulator")
    assert not blind.any()


def half(*shape: int) -> Any:
    return np.ones(shape, np.float16)


Q = half(2, 4, 10, 16)
K = half(2, 2, 12, 16)
READ_ONLY = half(2, 4, 10, 16)
READ_ONLY.flags.writeable = False
MISTAKES: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((half(4, 10, 16), K, K), {}, "argument 'q': expected (batch, heads, length, elements of a"),
    ((Q.astype(np.float32), K, K), {}, "argument 'q': expected dtype f16 or bf16, found f32"),
    ((Q, K.astype(ml_dtypes.bfloat16), K), {}, "argument 'k': expected dtype f16 like 'q', found"),
    ((Q, half(2, 3, 12, 16), K), {}, "argument 'k': its 3 heads do not divide the 4 of 'q'"),
    ((Q, half(1, 2, 12, 16), K), {}, "argument 'k': expected shape (2, 2, 12, 16), found (1, 2,"),
    ((Q, K, half(2, 2, 13, 16)), {}, "argument 'v': expected shape (2, 2, 12, 16), found (2, 2,"),
    ((Q, K, half(2, 2, 12, 300)), {}, "argument 'v': expected 1 to 256 elements of a head, found"),
    ((Q, K, K, half(2, 4, 10, 8)), {}, "argument 'out': expected shape (2, 4, 10, 16), found"),
    ((Q, K, K, READ_ONLY), {}, "argument 'out': the array is read-only"),
    ((Q, K, K, Q), {}, "argument 'out': it overlaps 'q' in memory"),
    ((Q, K, K), {"causal": 1}, "argument 'causal': expected True or False, found 1"),
    ((Q, K, K), {"window": 4}, "argument 'window': it counts keys up to the query's: causal=True"),
    ((Q, K, K), {"window": 0}, "argument 'window': expected None or 1 or more, found 0"),
    ((Q, K, K), {"scale": -1}, "argument 'scale': expected a positive number, found -1"),
    ((Q, K, K), {"logs": half(2, 4, 10)}, "argument 'logs': expected dtype f32, found f16"),
    ((Q, K, K), {"logs": half(2, 4, 9)}, "argument 'logs': expected shape (2, 4, 10), found"),
]


@pytest.mark.parametrize(("arrays", "named", "text"), MISTAKES)
def test_mistakes(arrays: tuple[Any, ...], named: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        tilec.ops.attention(*arrays, **named, device="emulator")
    assert text in str(error.value)
