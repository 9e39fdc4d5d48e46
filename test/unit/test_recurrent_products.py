"""Recurrences whose products multiply what their loop carries: tiles, warps, results."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def gated_retention(
    q: tl.array, k: tl.array, v: tl.array, g: tl.array, o: tl.array,
    D: tl.const, BC: tl.const = tl.auto, BV: tl.const = tl.auto,
):  # fmt: skip
    """o[i] = q[i] S[i], S[i] = 2^g[i] S[i - 1] + k[i]^T v[i], a g for each place and head."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state, at = tl.zeros((D, BV), tl.f32), tl.arange(BC)
    for c in tl.range(0, q.shape[2], BC):
        query, key = tl.load(q, (b, h, c, 0), (BC, D)), tl.load(k, (b, h, c, 0), (BC, D))
        value = tl.load(v, (b, h, c, n), (BC, BV))
        sums = tl.cumsum(tl.load(g, (b, h, c), BC))
        whole = tl.sum(tl.where(at == BC - 1, sums, 0.0))
        out = tl.dot(query, state.to(query.dtype)) * tl.exp2(sums)[:, None]
        apart = sums[:, None] - sums[None, :]
        weights = tl.dot(query, key.T) * tl.exp2(tl.minimum(apart, 0.0))
        weights = tl.where(at[:, None] >= at[None, :], weights, 0.0)
        tl.store(o, (b, h, c, n), tl.dot(weights.to(v.dtype), value, out).to(o.dtype))
        value = (value.to(tl.f32) * tl.exp2(whole - sums)[:, None]).to(v.dtype)
        state = tl.dot(key.T, value, state * tl.exp2(whole))


def specs(batch: int, heads: int, length: int, keys: int, values: int) -> tuple[list[str], dict]:
    """Of arrays of any sizes, and usual ones."""
    widths = {"q": keys, "k": keys, "v": values, "o": values}
    sizes = {name: (batch, heads, length, width) for name, width in widths.items()}
    four = "f16[?,?,?,?:8;?:8,?:8,?:8,1]"
    found = [
        f"{name}:f32[?,?,?;?:8,?:8,1]" if name == "g" else f"{name}:{four}" for name in "qkvgo"
    ]
    return found, {**sizes, "g": (batch, heads, length)}


@pytest.mark.parametrize("columns", [16, 32, 64])
def test_two_warpgroups_take_turns_of_a_recurrence_of_64_rows(columns: int) -> None:
    arrays, _ = specs(1, 1, 1, 64, 64)
    constants = {"D": 64, "BC": 64, "BV": columns}
    found = gated_retention.compile(arrays, constants, target="sm_90a").report["decisions"]
    assert [one["chosen"] for one in found if one["about"] == "warps"] == ["8"]


@pytest.mark.parametrize(
    ("shape", "tiles"),
    [
        ((2, 8, 1024, 64, 128), (64, 16)),  # 25.7 us on an H200, 27.8 by 32 columns
        ((3, 8, 3776, 128, 64), (64, 16)),  # 104.6; 117.8 by 32, in chunks of 128 133.6
        ((4, 16, 2048, 128, 128), (64, 64)),  # 72.2; 128.0 by 32
    ],
)
def test_few_programs_of_a_recurrence_have_narrow_states(
    shape: tuple[int, ...], tiles: tuple[int, int]
) -> None:
    arrays, sizes = specs(*shape)
    constants = {"D": shape[3]}
    found = gated_retention.compile(arrays, constants, target="sm_90a", sizes=sizes)
    assert (found.constants["BC"], found.constants["BV"]) == tiles


@pytest.mark.parametrize(("length", "values"), [(200, 40), (64, 16), (330, 64)])
def test_results_of_narrow_states(
    length: int, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five chunks and a ragged one wrap every ring."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(length)
    q, k = (rng.standard_normal((2, 1, length, 64)).astype(np.float16) / 8 for _ in range(2))
    v = rng.standard_normal((2, 1, length, values)).astype(np.float16)
    g = -rng.random((2, 1, length)).astype(np.float32)
    o = np.full(v.shape, np.nan, np.float16)
    gated_retention.check(q, k, v, g, o, D=64, BC=64, BV=16)
    state, expected = np.zeros((2, 64, values)), np.zeros((2, length, values))
    for i in range(length):
        state = state * np.exp2(np.float64(g[:, 0, i, None, None]))
        state += k[:, 0, i, :, None].astype(np.float64) * v[:, 0, i, None]
        expected[:, i] = np.einsum("bd,bdv->bv", q[:, 0, i].astype(np.float64), state)
    assert np.linalg.norm(o[:, 0] - expected) < 2e-3 * np.linalg.norm(expected)
