"""`tilec.ops.attention` and its gradients on the emulator, against float64; what they say of wrong
arguments."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import attended, error
from target_names import MAIN

import tilec
from tilec.ops.attention_options import NAMES, Asked
from tilec.runtime.errors import ArgumentError

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
    right = attended(q[0], k[0], v[0], do[0], causal=causal, window=window)
    blind = right[1] == -np.inf
    assert blind.any() == ("none" in case)
    assert not out[0][blind].any()
    np.testing.assert_allclose(logs[0][~blind], right[1][~blind], atol=1e-5)
    for found, exact in zip((out, *gradients), (right[0], *right[2:5]), strict=True):
        assert found.dtype == dtype
        assert error(found[0], exact) < (1.5e-2 if dtype == ml_dtypes.bfloat16 else 2e-3)


def test_out_views_and_nothing_to_do() -> None:
    x = np.random.default_rng(1).standard_normal((2, 30, 3, 16)).astype(np.float16)
    q, k, v = (x[:, :, n : n + 1].transpose(0, 2, 1, 3) for n in range(3))  # of one array
    out = np.full((2, 30, 16), np.nan, np.float16)
    found = tilec.ops.attention(q, k, v, out[:, None], scale=0.25, device="emulator")
    assert np.shares_memory(found, out)
    for n in range(2):
        np.testing.assert_allclose(out[n, None], attended(q[n], k[n], v[n])[0], atol=2e-3)
    none = tilec.ops.attention(q[:, :, :0], k, v, device="emulator")
    assert none.shape == (2, 1, 0, 16)
    blind = tilec.ops.attention(q, k[:, :, :0], v[:, :, :0], device="emulator")
    assert not blind.any()


def half(*shape: int) -> Any:
    return np.ones(shape, np.float16)


Q = half(2, 4, 10, 16)
K = half(2, 2, 12, 16)
T = half(10, 4, 16)
TWO = np.array([0, 10], np.int32)
READ_ONLY = half(2, 4, 10, 16)
READ_ONLY.flags.writeable = False
MISTAKES: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((half(4, 10, 16), K, K), {}, "argument 'q': expected (batch, heads, length, elements of a"),
    (
        (Q.astype(np.float32), K, K),
        {},
        "argument 'q': expected dtype f16 or bf16, or fp8, found f32",
    ),
    ((Q, K.astype(ml_dtypes.bfloat16), K), {}, "argument 'k': expected dtype f16 like 'q', found"),
    ((Q, half(2, 3, 12, 16), K), {}, "argument 'k': its 3 heads do not divide the 4 of 'q'"),
    ((Q, half(1, 2, 12, 16), K), {}, "argument 'k': expected shape (2, 2, 12, 16), found (1, 2,"),
    ((Q, K, half(2, 2, 13, 16)), {}, "argument 'v': expected shape (2, 2, 12, 16), found (2, 2,"),
    ((Q, K, half(2, 2, 12, 300)), {}, "argument 'v': expected 1 to 256 elements of a head, found"),
    ((Q, K, K, half(2, 4, 10, 8)), {}, "argument 'out': expected shape (2, 4, 10, 16), found"),
    ((Q, K, K, READ_ONLY), {}, "argument 'out': the array is read-only"),
    ((Q, K, K, Q), {}, "argument 'out': it overlaps 'q' in memory"),
    ((Q, K, K), {"causal": 1}, "argument 'causal': expected True or False, found 1"),
    ((Q, K, K), {"casual": True}, "argument 'casual': attention takes arrays, and causal, window"),
    ((Q, K, K), {"window": 4}, "argument 'window': it counts keys up to the query's: causal=True"),
    ((Q, K, K), {"window": 0}, "argument 'window': expected None or 1 or more, found 0"),
    ((Q, K, K), {"scale": -1}, "argument 'scale': expected a positive number, found -1"),
    ((Q, K, K), {"logs": half(2, 4, 10)}, "argument 'logs': expected dtype f32, found f16"),
    ((Q, K, K), {"logs": half(2, 4, 9)}, "argument 'logs': expected shape (2, 4, 10), found"),
    ((Q, K, K), {"cap": 0}, "argument 'cap': expected a positive number, found 0"),
    ((Q, K, K), {"dropout": 1.0}, "argument 'dropout': expected a number from 0 to less than 1, "),
    (
        (Q, K, K),
        {"dropout": 0.5},
        "argument 'seed': dropout needs a whole number, the same for the",
    ),
    ((Q, K, K), {"sinks": np.ones(3, np.float32)}, "argument 'sinks': expected shape (4,), found"),
    (
        (Q, K, K),
        {"sinks": np.ones(4, int)},
        "argument 'sinks': expected dtype f32 or f16 or bf16, ",
    ),
    (
        (Q, K, K),
        {"starts": TWO},
        "argument 'q': expected (tokens, heads, elements of a head), found",
    ),
    ((Q[0], K[0], K[0]), {"starts": TWO}, "argument 'k': its 12 heads do not divide the 10 of 'q'"),
    ((T, T, T), {"starts": TWO[None]}, "argument 'starts': expected (sequences + 1,), found shape"),
    ((T, T, T), {"starts": TWO.astype(float)}, "argument 'starts': expected dtype i32, found f64"),
    ((T, T, T), {"starts": TWO, "lengths": TWO}, "argument 'lengths': not of sequences that 'star"),
    ((T, T, T), {"starts": TWO, "longest": -1}, "argument 'longest': expected 0 or more, found -1"),
    ((Q, K, K), {"longest": 10}, "argument 'longest': it needs 'starts', too"),
    ((Q, K, K), {"scratch": -1}, "argument 'scratch': expected 0 or more, found -1"),
    ((Q, K, K), {"scratch": True}, "argument 'scratch': expected 0 or more, found True"),
    ((Q, K, K), {"scratch": 1e9}, "argument 'scratch': expected 0 or more, found 1000000000.0"),
    ((Q, K, K), {"key_starts": TWO}, "argument 'key_starts': it needs 'starts', too"),
    ((Q, K, K), {"table": TWO[None]}, "argument 'table': it needs 'lengths', too"),
    ((Q, K, K), {"lengths": TWO[:1]}, "argument 'lengths': expected shape (2,), found (1,)"),
    (
        (Q, half(7, 16, 2, 16), half(7, 16, 2, 16)),
        {"lengths": TWO, "table": TWO},
        "argument 'table': expected (batch, pages of one), found shape (2,)",
    ),
    ((Q, K, K), {"lengths": TWO, "dropout": 0.5, "seed": 1}, "argument 'dropout': not with 'lengt"),
]


@pytest.mark.parametrize(("arrays", "named", "text"), MISTAKES)
def test_mistakes(arrays: tuple[Any, ...], named: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        tilec.ops.attention(*arrays, **named, device="emulator")
    assert text in str(error.value)


def test_type_checkers_see_every_option() -> None:
    assert tuple(Asked.__annotations__) == NAMES
