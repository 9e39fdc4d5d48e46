"""Kinds of attention on the emulator, against float64: caps, sinks, dropout, packed sequences,
caches, pages, one query a sequence, fp8."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import attended, error, kept_weights

import tilec

BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
LENGTHS = np.array([3, 64, 175], np.int32)


@pytest.fixture(autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target that a test names, Hopper's where it names none."""
    named = getattr(request.node, "callspec", None)
    monkeypatch.setenv("TILEC_TARGET", named.params.get("on", "sm_90a") if named else "sm_90a")
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")


def draw(*shape: int, dtype: Any = np.float16) -> Any:
    """Normal values, others for each shape."""
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


@pytest.mark.share(3)
@pytest.mark.parametrize("on", ["sm_80", "sm_90a", "sm_100a"])
def test_caps_sinks_and_dropout(on: str) -> None:
    """All at once, with a window, and gradients of all that has some."""
    q, k, v, do = draw(1, 4, 90, 24), draw(1, 2, 90, 24), draw(1, 2, 90, 40), draw(1, 4, 90, 40)
    sinks, seed = draw(4, dtype=np.float32), 2**40 + 7
    options = {"causal": True, "window": 33, "cap": 1.5}
    own = {**options, "sinks": sinks, "dropout": 0.25, "seed": seed}
    kept = kept_weights(seed, 4, 90, 90, 0.25)
    right = attended(q[0], k[0], v[0], do[0], **options, sinks=sinks, kept=kept, dropout=0.25)
    logs = np.full((1, 4, 90), np.nan, np.float32)
    out = tilec.ops.attention(q, k, v, logs=logs, **own)
    *found, dsinks = tilec.ops.attention_gradients(do, q, k, v, out, logs, **own)
    for mine, exact in zip((out, *found), (right[0], *right[2:5]), strict=True):
        assert error(mine[0], exact) < 2e-3
    np.testing.assert_allclose(logs[0], right[1], atol=1e-3)
    np.testing.assert_allclose(dsinks, right[5], atol=2e-3)


STARTS = {
    "one behind the other": ([0, 0, 70, 71, 168], None, True, 40),
    "other keys": ([0, 5, 70, 71], [0, 90, 90, 170], False, None),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("on", ["sm_80", "sm_90a", "sm_100a"])
def test_packed(kind: str, on: str) -> None:
    """Sequences without a token, with one, with more than a tile; keys that nobody asks for."""
    starts, others, causal, window = STARTS[kind]
    ends = others or starts
    q, do = draw(starts[-1], 4, 32), draw(starts[-1], 4, 48)
    k, v = draw(ends[-1], 2, 32), draw(ends[-1], 2, 48)
    own = {"starts": np.array(starts, np.int32), "causal": causal, "window": window}
    if others:
        own |= {"key_starts": np.array(others, np.int32), "longest_key": 90}
    own["longest"] = max(b - a for a, b in pairwise(starts))
    logs = np.full((4, starts[-1]), np.nan, np.float32)
    out = tilec.ops.attention(q, k, v, logs=logs, **own)
    dq, dk, dv = tilec.ops.attention_gradients(do, q, k, v, out, logs, **own)
    for (a, b), (c, d) in zip(pairwise(starts), pairwise(ends), strict=True):
        mine = [x.swapaxes(0, 1) for x in (q[a:b], k[c:d], v[c:d], do[a:b])]
        right = attended(*mine, causal=causal, window=window)
        if a == b or c == d:
            assert not any(x.any() for x in (out[a:b], dq[a:b], dk[c:d], dv[c:d]))
            continue
        seen = right[1] > -np.inf
        np.testing.assert_allclose(logs[:, a:b][seen], right[1][seen], atol=1e-4)
        pairs = (out[a:b], right[0]), (dq[a:b], right[2]), (dk[c:d], right[3]), (dv[c:d], right[4])
        for found, exact in pairs:
            assert error(found.swapaxes(0, 1), exact) < 3e-3


def caches(width: int, page: int | None) -> tuple[Any, Any, dict[str, Any], list[Any]]:
    """k, v, what else is given, and each sequence's keys and values; all else is no number."""
    held = [[draw(2, n, width + i) for i in (0, 1)] for n in LENGTHS]
    own = [[x[..., :width] for x in pair] for pair in held]
    if page is None:
        k, v = (np.full((3, 2, 190, width), np.nan, np.float16) for _ in "kv")
        for n, (key, value) in enumerate(own):
            k[n, :, : LENGTHS[n]], v[n, :, : LENGTHS[n]] = key, value
        return k, v, {"lengths": LENGTHS}, own
    most = -(-int(LENGTHS.max()) // page)
    table = np.random.default_rng(page).permutation(3 * most + 5)[: 3 * most].reshape(3, most)
    k, v = (np.full((3 * most + 5, page, 2, width), np.nan, np.float16) for _ in "kv")
    for n, (key, value) in enumerate(own):
        for i in range(LENGTHS[n]):
            k[table[n, i // page], i % page] = key[:, i]
            v[table[n, i // page], i % page] = value[:, i]
    return k, v, {"lengths": LENGTHS, "table": table.astype(np.int32)}, own


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("queries", "page", "window", "on"),
    [
        (1, None, 50, "sm_90a"),
        (1, 16, None, "sm_80"),
        (1, 64, 70, "sm_100a"),
        (5, None, None, "sm_100a"),
        (5, 16, 30, "sm_90a"),
        (5, 64, None, "sm_80"),
    ],
)
def test_caches(queries: int, page: int | None, window: int | None, on: str) -> None:
    """Queries are the last of a sequence's keys; some stand in front of all, and see none."""
    k, v, given, held = caches(32, page)
    q = draw(3, 6, queries, 32)
    logs = np.full((3, 6, queries), np.nan, np.float32)
    out = tilec.ops.attention(q, k, v, causal=True, window=window, logs=logs, **given)
    for n, (key, value) in enumerate(held):
        ahead = int(LENGTHS[n]) - queries
        right = attended(q[n], key, value, causal=True, window=window, ahead=ahead)
        assert error(out[n], right[0]) < 2e-3
        seen = right[1] > -np.inf
        np.testing.assert_allclose(logs[n][seen], right[1][seen], atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("on", ["sm_80", "sm_90a"])
def test_programs_share_the_keys_of_one_query(on: str) -> None:
    """More than one part of 256 keys each, of two sequences; one of them has a single key."""
    q, k, v = draw(2, 8, 1, 64), draw(2, 2, 700, 64), draw(2, 2, 700, 64)
    lengths, sinks = np.array([700, 1], np.int32), draw(8, dtype=np.float32)
    k[1, :, 1:], v[1, :, 1:] = np.nan, np.nan
    out = tilec.ops.attention(q, k, v, lengths=lengths, sinks=sinks, cap=2.0)
    for n, length in enumerate(lengths):
        right = attended(q[n], k[n, :, :length], v[n, :, :length], sinks=sinks, cap=2.0)
        assert error(out[n], right[0]) < 2e-3


@pytest.mark.share(3)
@pytest.mark.parametrize("on", ["sm_80", "sm_90a", "sm_100a"])
def test_fp8(on: str) -> None:
    q, k, v = (draw(1, heads, n, 64, dtype=FP8) for heads, n in ((4, 80), (2, 97), (2, 98)))
    logs = np.full((1, 4, 80), np.nan, np.float32)
    out = tilec.ops.attention(q, k, v[:, :, :97], causal=True, logs=logs)
    right = attended(q[0], k[0], v[0, :, :97], causal=True)
    assert out.dtype == BF16
    assert error(out[0], right[0]) < 3e-2
    np.testing.assert_allclose(logs[0], right[1], atol=1e-3)
    wide = np.full((1, 4, 80, 64), np.nan, np.float32)
    assert tilec.ops.attention(q, k, v[:, :, :97], wide, causal=True) is wide
    assert error(wide[0], right[0]) < 3e-2
