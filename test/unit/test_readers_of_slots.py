"""Loops in which two products, or a product and threads, read one tile in shared memory: its slot
is given back behind all of them, however products are moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl

STEP = 64


@tilec.kernel(grid=lambda c: tl.cdiv(c.shape[0], 64), persistent=True)
def scaled_and_summed(a: tl.array, b: tl.array, scales: tl.array, c: tl.array):
    """c[i, j] = the sum over blocks of k of a's and b's products times the block's scale, plus the
    sum of row i of a."""
    m = tl.program_id(0) * 64
    acc = tl.zeros((64, 16), tl.f32)
    sums = tl.zeros(64, tl.f32)
    for k in tl.range(0, a.shape[1], 32):
        x = tl.load(a, (m, k), (64, 32))
        acc = acc + tl.dot(x, tl.load(b, (k, 0), (32, 16))) * tl.load(scales, k // 32, ())
        sums = sums + tl.sum(x.to(tl.f32), axis=1)
    tl.store(c, (m, 0), acc + sums[:, None])


@tilec.kernel(grid=lambda o: tl.cdiv(o.shape[0], STEP), persistent=True)
def two_products(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, sums: tl.array, WHAT: tl.const
):
    """o = max(q k, 0) v; `sums`: of the rows of k, or of the columns of v."""
    m = tl.program_id(0) * STEP
    query = tl.load(q, (m, 0), (STEP, 32))
    acc = tl.zeros((STEP, 32), tl.f32)
    total = tl.zeros(32, tl.f32)
    for n in tl.range(0, v.shape[0], STEP):
        key, value = tl.load(k, (0, n), (32, STEP)), tl.load(v, (n, 0), (STEP, 32))
        scores = tl.maximum(tl.dot(query, key), 0.0)
        if WHAT == "k, first":
            total = total + tl.sum(key.to(tl.f32), axis=1)
        acc = tl.dot(scores.to(tl.f16), value, acc)
        if WHAT == "k":
            total = total + tl.sum(key.to(tl.f32), axis=1)
        if WHAT == "v":
            total = total + tl.sum(value.to(tl.f32), axis=0)
    tl.store(o, (m, 0), acc)
    if tl.program_id(0) == 0:
        tl.store(sums, 0, total)


@tilec.kernel(grid=lambda o: tl.cdiv(o.shape[0], STEP))
def both_signs(q: tl.array, k: tl.array, v: tl.array, o: tl.array):
    """o = max(q k, 0) v - min(q k, 0) v."""
    m = tl.program_id(0) * STEP
    query = tl.load(q, (m, 0), (STEP, 16))
    above, below = tl.zeros((STEP, 64), tl.f32), tl.zeros((STEP, 64), tl.f32)
    for n in tl.range(0, v.shape[0], 128, stages=3):
        value = tl.load(v, (n, 0), (128, 64))
        scores = tl.dot(query, tl.load(k, (0, n), (16, 128)))
        below = tl.dot(tl.minimum(scores, 0.0).to(value.dtype), value, below)
        above = tl.dot(tl.maximum(scores, 0.0).to(value.dtype), value, above)
    tl.store(o, (m, 0), above - below)


def chosen(kernel: Any, *arguments: Any, **constants: Any) -> list[str]:
    """What the report says became of matrix instructions, and why."""
    decisions = kernel.compiled(*arguments, **constants).report["decisions"]
    about = [d for d in decisions if d["about"] == "matrix instructions"]
    return [d[key] for d in about for key in ("chosen", "why")]


def small(*shape: int) -> np.ndarray:
    """Integers of which all sums are exact."""
    return np.random.default_rng(len(shape)).integers(-1, 2, shape).astype(np.float16)


def test_sums_of_scaled_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several programs a CTA, a ring that comes round."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    a, b, scales = small(189, 32 * 25), small(32 * 25, 16), small(25).astype(np.float32)
    c = np.full((189, 16), np.nan, np.float32)
    kernel = scaled_and_summed.on("emulator:check")
    kernel(a, b, scales, c)
    assert "a product under the next one" in chosen(kernel, a, b, scales, c)
    each = a.astype(float) * np.repeat(scales, 32)
    np.testing.assert_array_equal(c, each @ b.astype(float) + a.sum(1, dtype=float)[:, None])


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("what", ["k, first", "k", "v"])
def test_two_products(what: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of the first product, or of the second, which on sm_90a stays where it is then."""
    monkeypatch.setenv("TILEC_TARGET", target)
    q, k, v = small(150, 32), small(32, STEP * 19 + 8), small(STEP * 19 + 8, 32)
    o, sums = np.full((150, 32), np.nan, np.float32), np.full(32, np.nan, np.float32)
    kernel = two_products.on("emulator:check")
    kernel(q, k, v, o, sums, WHAT=what)
    if target == "sm_90a":
        told = "threads read what the second product does" if what == "v" else "rotated"
        assert told in chosen(kernel, q, k, v, o, sums, WHAT=what)
    scores = np.maximum(q.astype(float) @ k.astype(float), 0)
    np.testing.assert_array_equal(o, scores @ v.astype(float))
    np.testing.assert_array_equal(sums, (v if what == "v" else k.T).sum(0, dtype=float))


@pytest.mark.parametrize("cluster", [1, 2])
def test_two_products_of_one_tile(cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run under the next iteration's; alone, and where CTAs share the tile's copies."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    q, k, v = small(131, 16), small(16, 128 * 8 + 8), small(128 * 8 + 8, 64)
    o = np.full((131, 64), np.nan, np.float32)
    kernel = both_signs.demanding(cluster=cluster).on("emulator:check")
    kernel(q, k, v, o)
    told = "its last 2 products run under the next iteration's first ones"
    assert told in chosen(kernel, q, k, v, o)
    scores = q.astype(float) @ k.astype(float)
    np.testing.assert_array_equal(o, abs(scores) @ v.astype(float))


@tilec.kernel(grid=lambda c: tl.cdiv(c.shape[0], 64))
def transposed_and_compared(a: tl.array, b: tl.array, c: tl.array, most: tl.array):
    """c = (b a)^T by tf32; most[i]: the greatest numbers of b's columns, by places in a block."""
    m = tl.program_id(0) * 64
    acc, top = tl.zeros((64, 16), tl.f32), tl.zeros(32, tl.f32)
    for k in tl.range(0, a.shape[0], 32):
        halves = tl.load(a, (k, m), (16, 64)), tl.load(a, (k + 16, m), (16, 64))
        y = tl.load(b, (0, k), (16, 32)).T
        acc = tl.dot(tl.cat(halves, axis=0).T, y, acc, precision="tf32")
        top = tl.maximum(top, tl.max(y, axis=1))
    tl.store(c, (m, 0), acc)
    tl.store(most, (tl.program_id(0), 0), top, dims=(1,))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_threads_read_the_transpose_that_is_multiplied(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buffer holds the transpose; threads read the tile there, and transpose it themselves."""
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b = small(160, 136).astype(np.float32), small(16, 160).astype(np.float32)
    c, most = np.full((136, 16), np.nan, np.float32), np.full((3, 32), np.nan, np.float32)
    transposed_and_compared.check(a, b, c, most)
    np.testing.assert_array_equal(c, (b @ a).T)
    expected = np.maximum(b.reshape(16, 5, 32).max(axis=(0, 1)), 0)
    np.testing.assert_array_equal(most, np.broadcast_to(expected, (3, 32)))


@tilec.kernel(grid=lambda c: tl.cdiv(c.shape[0], 64))
def looked_at(a: tl.array, b: tl.array, wanted: tl.array, c: tl.array, places: tl.array):
    """c = a b; places: where each row has its greatest sum, added up over the blocks of k, in those
    programs where it is wanted."""
    m = tl.program_id(0) * 64
    acc, found = tl.zeros((64, 64), tl.f32), tl.zeros(64, tl.i32)
    for k in tl.range(0, a.shape[1], 64, stages=4):
        if tl.load(wanted, m // 64, ()) > 0:
            found = found + tl.argmax(acc, axis=1)
        acc = tl.dot(tl.load(a, (m, k), (64, 64)), tl.load(b, (k, 0), (64, 64)), acc)
    tl.store(c, (m, 0), acc)
    tl.store(places, m, found)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_guard_reads_the_sum(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is under way where a branch of the next iteration reads its sum."""
    monkeypatch.setenv("TILEC_TARGET", target)
    draw = np.random.default_rng(3).integers
    a, b = (draw(-1, 2, size).astype(np.float16) for size in ((192, 640), (640, 64)))
    wanted, c = np.array([1, 0, 1], np.int32), np.full((192, 64), np.nan, np.float32)
    places = np.full(192, -1, np.int32)
    looked_at.check(a, b, wanted, c, places)
    sums = [a[:, :k].astype(float) @ b[:k].astype(float) for k in range(0, 641, 64)]
    np.testing.assert_array_equal(c, sums[-1])
    expected = sum(np.argmax(one, axis=1) for one in sums[:-1]) * np.repeat(wanted, 64)
    np.testing.assert_array_equal(places, expected)
