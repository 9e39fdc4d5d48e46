"""Loops with two products and work between them, none of them attention, and what they give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import tilec
from tilec import language as tl
from tilec.call.jit import Kernel

BF16 = ml_dtypes.bfloat16


def by_rows(x: tl.array, BM: tl.const) -> tuple[Any, ...]:
    """A program for BM rows."""
    return (tl.cdiv(x.shape[0], BM),)


@tilec.kernel(grid=by_rows)
def perceptron(
    x: tl.array, up: tl.array, down: tl.array, y: tl.array, D: tl.const, BM: tl.const, BN: tl.const
):
    """y = relu(x up^T) down: the second sum is only added to."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, up.shape[0], BN):
        hidden = tl.maximum(tl.dot(tx, tl.load(up, (n, 0), (BN, D)).T), 0.0)
        acc = tl.dot(hidden.to(x.dtype), tl.load(down, (n, 0), (BN, D)), acc)
    tl.store(y, (m, 0), acc.to(y.dtype))


@tilec.kernel(grid=by_rows)
def fading(
    x: tl.array,
    up: tl.array,
    down: tl.array,
    y: tl.array,
    D: tl.const,
    BM: tl.const,
    BN: tl.const,
    OUT: tl.const = None,
    STAGES: tl.const = None,
):
    """The same with a sum of which a part is forgotten with each block of `up`."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    width = D if OUT is None else OUT
    acc = tl.full((BM, width), 1.0, tl.f32)
    for n in tl.range(0, up.shape[0], BN, stages=STAGES):
        hidden = tl.maximum(tl.dot(tx, tl.load(up, (n, 0), (BN, D)).T), 0.0)
        acc = tl.dot(hidden.to(x.dtype), tl.load(down, (n, 0), (BN, width)), acc * 0.5)
    tl.store(y, (m, 0), acc.to(y.dtype))


@tilec.kernel(grid=by_rows)
def gated(
    x: tl.array, up: tl.array, gate: tl.array, down: tl.array, y: tl.array, D: tl.const,
    BM: tl.const, BN: tl.const,
):  # fmt: skip
    """y = ((x up^T) relu(x gate^T)) down: two products an iteration ahead."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, up.shape[0], BN):
        one = tl.dot(tx, tl.load(up, (n, 0), (BN, D)).T)
        other = tl.dot(tx, tl.load(gate, (n, 0), (BN, D)).T)
        hidden = one * tl.maximum(other, 0.0)
        acc = tl.dot(hidden.to(x.dtype), tl.load(down, (n, 0), (BN, D)), acc)
    tl.store(y, (m, 0), acc.to(y.dtype))


@tilec.kernel(grid=by_rows)
def squares(x: tl.array, up: tl.array, y: tl.array, D: tl.const, BM: tl.const, BN: tl.const):
    """Sums of squares of a product's rows: nothing is awaited later, one is issued ahead."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    total = tl.zeros((BM,), tl.f32)
    for n in tl.range(0, up.shape[0], BN):
        part = tl.dot(tx, tl.load(up, (n, 0), (BN, D)).T)
        total += tl.sum(part * part, 1)
    tl.store(y, (m,), total.to(y.dtype))


@tilec.kernel(grid=by_rows)
def tied(x: tl.array, w: tl.array, y: tl.array, D: tl.const, BM: tl.const, BN: tl.const):
    """y = relu(x w^T) w, as attention whose keys are values: both products read one tile, the first
    of them transposed."""
    m = tl.program_id(0) * BM
    tx = tl.load(x, (m, 0), (BM, D))
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, w.shape[0], BN):
        tile = tl.load(w, (n, 0), (BN, D))
        hidden = tl.maximum(tl.dot(tx, tile.T), 0.0)
        acc = tl.dot(hidden.to(x.dtype), tile, acc)
    tl.store(y, (m, 0), acc.to(y.dtype))


@tilec.kernel(grid=lambda: (1,))
def chunked(
    q: tl.array, k: tl.array, v: tl.array, y: tl.array, D: tl.const, BM: tl.const, BN: tl.const
):
    """Linear attention, causal, in chunks: a product in its own iteration reads a tile of values
    first, one that is awaited an iteration later reads it behind that."""
    state = tl.zeros((D, D), tl.f32)
    for n in tl.range(0, k.shape[0], BM):
        query, key, value = (tl.load(x, (n, 0), (BM, D)) for x in (q, k, v))
        score = tl.dot(query, key.T)
        score = tl.where(tl.arange(BM)[:, None] >= tl.arange(BM)[None, :], score, 0.0)
        output = tl.dot(query, state.to(q.dtype))
        output = tl.dot(score.to(q.dtype), value, output)
        state = tl.dot(key.T, value, state)
        tl.store(y, (n, 0), output.to(y.dtype))


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bf16, small enough for sums of a few hundred."""
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) / 4).astype(BF16)


def rows(*arrays: np.ndarray, block: int) -> list[list[np.ndarray]]:
    """Blocks of rows in float64."""
    cut = range(0, len(arrays[0]), block)
    return [[array[n : n + block].astype(np.float64) for array in arrays] for n in cut]


def expected_of(kernel: Kernel, arguments: list[np.ndarray], block: int) -> np.ndarray:
    """In float64."""
    x = arguments[0].astype(np.float64)
    if kernel is squares:
        return ((x @ arguments[1].astype(np.float64).T) ** 2).sum(1)
    if kernel is chunked:
        keys, values = (array.astype(np.float64) for array in arguments[1:])
        return np.tril(x @ keys.T) @ values
    if kernel is tied:
        arguments = [*arguments, arguments[1]]
    acc = np.full((len(x), arguments[-1].shape[1]), float(kernel is fading))
    for one, *gate, down in rows(*arguments[1:], block=block):
        hidden = np.maximum(x @ one.T, 0)
        if gate:
            hidden = x @ one.T * np.maximum(x @ gate[0].T, 0)
        acc = acc * (0.5 if kernel is fading else 1.0) + hidden @ down
    return acc
