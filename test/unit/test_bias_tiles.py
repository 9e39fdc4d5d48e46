"""Tiles that registers add to a product's result before it is multiplied again, as attention's
bias: a ring brings them with the operands."""

from __future__ import annotations

import warnings
from math import prod

import numpy as np
import pytest
from checked_calls import assert_right, empty, normal
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.messages.diagnostics import PerformanceWarning
from tilec.runtime.arrays import ArrayView
from tilec.runtime.facts import observe_parameter


@tilec.kernel(grid=lambda q, BM: tl.cdiv(q.shape[0], BM))
def biased(
    q: tl.array, k: tl.array, v: tl.array, bias: tl.array, o: tl.array,
    BM: tl.const = 128, BN: tl.const = 64,
):  # fmt: skip
    """o = softmax(q k^T + bias) v, of 64 elements a head."""
    m = tl.program_id(0) * BM
    query, acc = tl.load(q, (m, 0), (BM, 64)), tl.zeros((BM, 64), tl.f32)
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    for n in tl.range(0, k.shape[0], BN):
        s = tl.dot(query, tl.load(k, (n, 0), (BN, 64)).T)
        s += tl.load(bias, (m, n), (BM, BN)).to(tl.f32)
        s = tl.where(n + tl.arange(BN)[None, :] < k.shape[0], s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp(s - higher[:, None]), tl.exp(high - higher)
        total, high = total * shrunk + tl.sum(p, 1), higher
        value = tl.load(v, (n, 0), (BN, 64))
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (m, 0), (acc / total[:, None]).to(o.dtype))


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """In float64."""
    scores = q.astype(float) @ k.T.astype(float) + bias
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v.astype(float)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("keys", "copies"), [(64 * 7 + 8, 4), (64 * 3 + 3, 3)])
def test_a_bias_comes_by_tensor_copies(
    target: str, keys: int, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With queries, keys and values, unless its rows begin between 16 bytes. The ring wraps."""
    monkeypatch.setenv("TILEC_TARGET", target)
    q, k, v, bias = normal(200, 64), normal(keys, 64), normal(keys, 64), normal(200, keys)
    q = (q / 8).astype(q.dtype)
    arguments = [q, k, v, bias, empty(200, 64)]
    assert_right(biased, arguments, {4: reference(q, k, v, bias)})
    if target == "sm_90a":
        said = decisions(biased.on("emulator").compiled(*arguments), "asynchronous copy")
        assert sum(one.startswith("TMA") for one in said) == copies


def test_a_bias_that_leaves_one_slot_comes_through_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """128 x 256 of 16 bits beside keys and values: 131072 bytes a slot."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    arguments = [normal(256, 64), *(normal(512, 64) for _ in range(2)), normal(256, 512)]
    compiled = biased.on("emulator").compiled(*arguments, empty(256, 64), BM=128, BN=256)
    said = decisions(compiled, "asynchronous copy")
    assert sum(one.startswith("TMA") for one in said) == 3


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def of_batches(
    q: tl.array, k: tl.array, v: tl.array, bias: tl.array, o: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """o = softmax(q k^T / 8 + bias) v of batches and heads, which share a bias."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query, acc = tl.load(q, (b, h, m, 0), (BM, 64)), tl.zeros((BM, 64), tl.f32)
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    for n in tl.range(0, k.shape[2], BN):
        s = tl.dot(query, tl.load(k, (b, h, n, 0), (BN, 64)).T) * 0.125
        s += tl.load(bias, (h, m, n), (BM, BN)).to(tl.f32)
        s = tl.where(n + tl.arange(BN)[None, :] < k.shape[2], s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp(s - higher[:, None], approx=True)
        shrunk = tl.exp(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        value = tl.load(v, (b, h, n, 0), (BN, 64))
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@pytest.mark.parametrize("tiles", [{}, {"BM": 256, "BN": 96}])
def test_a_bias_whose_rows_begin_anywhere_leaves_room(tiles: dict[str, int]) -> None:
    """Elements come one by one, a register each: in 256 x 96 ptxas spilled 764 bytes, and it took
    441 us where 64 x 64 took 101 (H200)."""
    shapes = {"q": (6, 13, 742, 64), "k": (6, 13, 1023, 64), "bias": (13, 742, 1023)}
    shapes |= {"v": shapes["k"], "o": shapes["q"]}
    views = {}
    for name in ("q", "k", "v", "bias", "o"):
        strides = tuple(prod(shapes[name][axis + 1 :]) for axis in range(len(shapes[name])))
        views[name] = ArrayView(0, shapes[name], strides, "bf16", ("cuda", 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        compiled = of_batches.compile(
            [observe_parameter(*one) for one in views.items()],
            tiles,
            target="sm_90a",
            index_bits=32,
            sizes=shapes,
        )
    if tiles:
        said = decisions(compiled, "registers")
        assert said[0].startswith("about 265 for role 'compute', which has 240")
    else:
        assert decisions(compiled, "loads")[0].startswith("an iteration ahead")
