"""Attention that authors write themselves: sinks, windows, soft caps, slopes, pages, packed
sequences, chunks of a recurrence; heads of uneven widths. On the emulator, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_calls import assert_right, empty, normal
from target_names import MAIN

import tilec
import tilec.language as tl

F16 = np.float16
IN_TURN: dict[str, Any] = {"consumers": "pingpong", "num_warps": 4}
pytestmark = pytest.mark.share(2)


@pytest.fixture(params=MAIN, autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[1], BM), q.shape[0]))
def attend(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, sink: tl.array, scale: float,
    WINDOW: tl.const = None, CAP: tl.const = None, SLOPES: tl.const = False, GROUP: tl.const = 1,
    D: tl.const = 64, DV: tl.const = 64, BM: tl.const = 64, BN: tl.const = 32,
    STAGES: tl.const = None,
):  # fmt: skip
    """Causal attention with a sink a head."""
    m, h = tl.program_id(0) * BM, tl.program_id(1)
    x = tl.load(q, (h, m, 0), (BM, D))
    top = tl.zeros((BM,), tl.f32) + tl.load(sink, h, ())
    sums, acc = tl.full((BM,), 1.0, tl.f32), tl.zeros((BM, DV), tl.f32)
    before = k.shape[1] - q.shape[1]
    rows = m + tl.arange(BM)[:, None] + before
    begin = 0 if WINDOW is None else tl.maximum(m + before - WINDOW + 1, 0) // BN * BN
    for n in tl.range(begin, tl.minimum(m + BM + before, k.shape[1]), BN, stages=STAGES):
        s = tl.dot(x, tl.load(k, (h // GROUP, n, 0), (BN, D)).T) * scale
        if CAP is not None:
            s = CAP * tl.tanh(s / CAP)
        columns = n + tl.arange(BN)[None, :]
        if SLOPES:
            s = s - 0.125 * (h + 1).to(tl.f32) * (rows - columns).to(tl.f32)
        seen = (columns <= rows) & (columns < k.shape[1])
        if WINDOW is not None:
            seen = seen & (columns > rows - WINDOW)
        s = tl.where(seen, s, -tl.inf)
        new = tl.maximum(top, tl.max(s, 1))
        p, factor = tl.exp(s - new[:, None]), tl.exp(top - new)
        sums = sums * factor + tl.sum(p, 1)
        values = tl.load(v, (h // GROUP, n, 0), (BN, DV))
        acc = tl.dot(p.to(v.dtype), values, acc * factor[:, None])
        top = new
    tl.store(o, (h, m, 0), (acc / sums[:, None]).to(o.dtype))


def weights(score: np.ndarray) -> np.ndarray:
    """Softmax of the last axis."""
    found = np.exp(score - score.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


def attended(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, sink: np.ndarray, scale: float, told: dict
) -> np.ndarray:
    """The same in float64."""
    k, v = (np.repeat(x.astype(float), told.get("GROUP", 1), 0) for x in (k, v))
    s = q.astype(float) @ k.swapaxes(1, 2) * scale
    if "CAP" in told:
        s = told["CAP"] * np.tanh(s / told["CAP"])
    heads, rows, columns = s.shape
    back = np.arange(rows)[:, None] + columns - rows - np.arange(columns)
    if told.get("SLOPES"):
        s = s - 0.125 * np.arange(1, heads + 1)[:, None, None] * back
    s = np.where((back >= 0) & (back < told.get("WINDOW", columns)), s, -np.inf)
    sinks = np.broadcast_to(sink[:, None, None], (heads, rows, 1))
    return weights(np.concatenate([s, sinks], -1))[..., :-1] @ v


CASES: dict[str, tuple[tuple[int, int], dict[str, Any], dict[str, Any]]] = {
    "192 and 128": ((70, 100), {"D": 192, "DV": 128}, {}),
    "window, cap, groups": (
        (200, 200), {"WINDOW": 33, "CAP": 10.0, "GROUP": 2, "STAGES": 3}, {"persistent": True},
    ),
    "slopes": ((130, 200), {"SLOPES": True, "STAGES": 2}, {"num_warps": 8}),
    "80 and 48, longer keys": ((1, 140), {"D": 80, "DV": 48}, {}),
    "in turn": ((260, 260), {}, IN_TURN),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kinds(name: str, target: str) -> None:
    (rows, columns), told, demands = CASES[name]
    if demands is IN_TURN and target != "sm_90a":
        pytest.skip("two sets of warps take turns on Hopper")
    group, d, dv = told.get("GROUP", 1), told.get("D", 64), told.get("DV", 64)
    q, k = normal(2 * group, rows, d), normal(2, columns, d, seed=1)
    v, sink = normal(2, columns, dv, seed=2), normal(2 * group, seed=3, dtype=np.float32)
    expected = attended(q, k, v, sink, d**-0.5, told)
    arguments = [q, k, v, empty(*expected.shape, dtype=F16), sink, d**-0.5]
    assert_right(attend.demanding(**demands), arguments, {3: expected}, **told)


@tilec.kernel(grid=lambda q: q.shape[:2])
def attend_pages(
    q: tl.array, keys: tl.array, values: tl.array, table: tl.array, length: tl.array, o: tl.array,
    PAGE: tl.const = 16, D: tl.const = 64, STAGES: tl.const = None,
):  # fmt: skip
    """Eight queries of a group to pages of a pool, of which a table tells the order."""
    b, h = tl.program_id(0), tl.program_id(1)
    n = tl.load(length, b, ())
    x = tl.load(q, (b, h, 0, 0), (16, D))
    top, sums = tl.full((16,), -1e30, tl.f32), tl.zeros((16,), tl.f32)
    acc = tl.zeros((16, D), tl.f32)
    for i in tl.range(0, tl.cdiv(n, PAGE), stages=STAGES):
        page, at = tl.load(table, (b, i), ()), i * PAGE + tl.arange(PAGE)
        s = tl.dot(x, tl.load(keys, (page, h, 0, 0), (PAGE, D)).T) * 0.125
        s = tl.where(at[None, :] < n, s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p, factor = tl.exp(s - new[:, None]), tl.exp(top - new)
        sums = sums * factor + tl.sum(p, 1)
        seen = tl.where(at[:, None] < n, tl.load(values, (page, h, 0, 0), (PAGE, D)), 0.0)
        acc = tl.dot(p.to(seen.dtype), seen, acc * factor[:, None])
        top = new
    tl.store(o, (b, h, 0, 0), tl.where(n > 0, acc / sums[:, None], 0.0).to(o.dtype))


@pytest.mark.parametrize(("stages", "warps"), [(None, 1), (3, 4)])
def test_pages(stages: int | None, warps: int) -> None:
    """Sequences without a key and with one; what a page has behind its last key is NaN."""
    length = np.array([0, 1, 16, 70, 200], np.int32)
    table = np.random.default_rng(0).permutation(70)[:65].reshape(5, 13).astype(np.int32)
    q, keys = normal(5, 2, 8, 64), normal(80, 2, 16, 64, seed=1)
    values, expected = normal(80, 2, 16, 64, seed=2), np.zeros((5, 2, 8, 64))
    for b, n in enumerate(length[1:], 1):
        pages = table[b, : -(-n // 16)]
        k, v = (
            x[pages].astype(float).swapaxes(0, 1).reshape(2, -1, 64)[:, :n] for x in (keys, values)
        )
        expected[b] = weights(q[b].astype(float) @ k.swapaxes(1, 2) * 0.125) @ v
        values[pages[-1], :, n - 16 * (len(pages) - 1) :] = np.nan
    arguments = [q, keys, values, table, length, empty(*expected.shape, dtype=F16)]
    assert_right(attend_pages.demanding(num_warps=warps), arguments, {5: expected}, STAGES=stages)


@tilec.kernel(grid=lambda q_ends, BM: (3, q_ends.shape[0]))
def attend_packed(
    q: tl.array, k: tl.array, v: tl.array, q_ends: tl.array, k_ends: tl.array, o: tl.array,
    BM: tl.const = 64, BN: tl.const = 32, D: tl.const = 64, STAGES: tl.const = None,
):  # fmt: skip
    """Sequences one behind the other, of queries and of keys, as windows."""
    m, b = tl.program_id(0) * BM, tl.program_id(1)
    first, start = (tl.assume(tl.load(x, b - 1, ()), min=0) for x in (q_ends, k_ends))
    rows, columns = tl.load(q_ends, b, ()) - first, tl.load(k_ends, b, ()) - start
    queries, results = (tl.window(x, (first, 0), (rows, None)) for x in (q, o))
    keys, values = (tl.window(x, (start, 0), (columns, None)) for x in (k, v))
    if m < rows:
        x = tl.load(queries, (m, 0), (BM, D))
        top, sums = tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32)
        acc = tl.zeros((BM, D), tl.f32)
        for n in tl.range(0, columns, BN, stages=STAGES):
            s = tl.dot(x, tl.load(keys, (n, 0), (BN, D)).T) * 0.125
            s = tl.where((n + tl.arange(BN))[None, :] < columns, s, -1e30)
            new = tl.maximum(top, tl.max(s, 1))
            p, factor = tl.exp(s - new[:, None]), tl.exp(top - new)
            sums = sums * factor + tl.sum(p, 1)
            acc = tl.dot(p.to(v.dtype), tl.load(values, (n, 0), (BN, D)), acc * factor[:, None])
            top = new
        result = tl.where(columns > 0, acc / sums[:, None], 0.0)
        tl.store(results, (m, 0), result.to(o.dtype))


@pytest.mark.parametrize(("stages", "demands"), [(None, {"persistent": True}), (3, {})])
def test_packed_sequences(stages: int | None, demands: dict[str, Any]) -> None:
    q_ends = np.cumsum([100, 1, 0, 64, 150], dtype=np.int32)
    k_ends = np.cumsum([40, 97, 10, 0, 32], dtype=np.int32)
    q, k, v = (normal(n, 64, seed=n) for n in (315, 179, 179))
    expected = np.zeros((315, 64))
    starts = zip([0, *q_ends], [0, *k_ends], strict=True)
    for (i, j), end, last in zip(starts, q_ends, k_ends, strict=False):
        if last > j and end > i:
            score = q[i:end].astype(float) @ k[j:last].astype(float).T * 0.125
            expected[i:end] = weights(score) @ v[j:last].astype(float)
    arguments = [q, k, v, q_ends, k_ends, empty(315, 64, dtype=F16)]
    assert_right(attend_packed.demanding(**demands), arguments, {5: expected}, STAGES=stages)


@tilec.kernel(grid=lambda o: o.shape[0])
def recur(
    q: tl.array, k: tl.array, v: tl.array, decay: tl.array, o: tl.array,
    D: tl.const = 64, C: tl.const = 32, STAGES: tl.const = None,
):  # fmt: skip
    """Linear attention: four products a chunk, of which one adds to the state."""
    h = tl.program_id(0)
    state = tl.zeros((D, D), tl.f32)
    below = tl.arange(C)[:, None] >= tl.arange(C)[None, :]
    for t in tl.range(0, q.shape[1], C, stages=STAGES):
        x, keys, values = (tl.load(each, (h, t, 0), (C, D)) for each in (q, k, v))
        score = tl.where(below, tl.dot(x, keys.T), 0.0).to(v.dtype)
        result = tl.dot(x, state.to(q.dtype)) + tl.dot(score, values)
        tl.store(o, (h, t, 0), result.to(o.dtype))
        state = tl.dot(keys.T, values, state * tl.load(decay, (h, t // C), ()))


@pytest.mark.parametrize(("length", "stages"), [(1, None), (200, 3)])
def test_a_state_along_chunks(length: int, stages: int | None) -> None:
    q, k, v = (0.3 * normal(3, length, 64, seed=seed) for seed in range(3))
    decay = np.random.default_rng(3).random((3, -(-length // 32))).astype(np.float32)
    expected, q, k, v = np.zeros((3, length, 64)), *(x.astype(F16) for x in (q, k, v))
    for h in range(3):
        state = np.zeros((64, 64))
        for t in range(0, length, 32):
            x, keys, values = (each[h, t : t + 32].astype(float) for each in (q, k, v))
            rounded = state.astype(F16).astype(float)
            expected[h, t : t + 32] = x @ rounded + np.tril(x @ keys.T) @ values
            state = state * decay[h, t // 32] + keys.T @ values
    arguments = [q, k, v, decay, empty(3, length, 64)]
    assert_right(recur.demanding(persistent=True), arguments, {4: expected}, 6e-3, STAGES=stages)
