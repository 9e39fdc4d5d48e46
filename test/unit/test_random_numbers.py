"""Philox: the known answers of its authors, and numbers with the distributions they should have."""

from __future__ import annotations

import numpy as np
import pytest
from target_names import MAIN

import tilec
import tilec.language as tl

ANSWERS = {
    (0, 0): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
}
"""Random123's kat_vectors for philox4x32-10, by (key, counter)."""


def reference(seed: int, counter: np.ndarray, rounds: int = 10) -> list[np.ndarray]:
    """Philox 4x32 in unsigned integers of 64 bits."""
    word, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    keys = np.array([seed], np.int64).view(np.uint64)
    k0, k1 = keys & low, keys >> word
    count = counter.astype(np.int64).view(np.uint64)
    a, b, c, d = count & low, count >> word, np.zeros_like(count), np.zeros_like(count)
    for _ in range(rounds):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (second >> word) ^ b ^ k0, second & low, (first >> word) ^ d ^ k1, first & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return [a, b, c, d]


@tilec.kernel(grid=(1,))
def all_bits(counters: tl.array, out: tl.array, seed: tl.i64, ROUNDS: tl.const = 10):
    bits = tl.philox(seed, tl.load(counters, 0, 64), ROUNDS)
    for number, tile in enumerate(bits):
        tl.store(out, (number, 0), tile)


@tilec.kernel(grid=lambda uniform, B: tl.cdiv(uniform.shape[0], B))
def numbers(uniform: tl.array, normal: tl.array, seed: tl.i32, B: tl.const = 1024):
    i = tl.program_id(0) * B
    tl.store(uniform, i, tl.rand(seed, i + tl.arange(B)))
    tl.store(normal, i, tl.randn(3, i + tl.arange(B)))


def test_known_answers() -> None:
    for (key, counter), words in ANSWERS.items():
        assert [int(x[0]) for x in reference(key, np.array([counter]))] == list(words)


@pytest.mark.parametrize("target", MAIN)
def test_bits(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    for dtype, seed, rounds in ((np.int32, -5, 10), (np.int64, 0x1234567890ABCDEF, 7)):
        limits = np.iinfo(dtype)
        counters = rng.integers(limits.min, limits.max, 64, dtype)
        counters[:4] = 0, 1, -1, limits.max
        out = np.zeros((4, 64), np.int32)
        all_bits.on("emulator")(counters, out, seed, ROUNDS=rounds)
        expected = np.stack(reference(seed, counters, rounds)).astype(np.uint32).view(np.int32)
        np.testing.assert_array_equal(out, expected)


def test_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    uniform, normal = np.zeros((2, 5000), np.float32)
    numbers.on("emulator")(uniform, normal, 17)
    bits = reference(17, np.arange(5000))[0]
    np.testing.assert_array_equal(uniform, (bits >> np.uint64(8)).astype(np.float64) / 2**24)
    assert np.histogram(uniform, 10, (0, 1))[0] == pytest.approx(500, abs=100)
    # Means of 5000: five times their standard deviations.
    assert normal.mean() == pytest.approx(0, abs=5 / 5000**0.5)
    assert (normal**2).mean() == pytest.approx(1, abs=5 * (2 / 5000) ** 0.5)
    assert (normal**4).mean() == pytest.approx(3, abs=5 * (96 / 5000) ** 0.5)
    assert np.corrcoef(normal[1:], normal[:-1])[0, 1] == pytest.approx(0, abs=5 / 5000**0.5)
