"""Triton's kernels that read rows whose numbers they load, in check mode, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_kernels import KERNELS, kernel_of, poisoned, random, target

import tilec.triton

__all__ = ["target"]
RNG = np.random.default_rng(41)


def cache(lengths: list[int], longest: int, width: int) -> tuple[Any, ...]:
    """Keys and values of all requests at drawn places, and each request's table of places."""
    places = RNG.permutation(len(lengths) * longest).astype(np.int32)
    keys, values = (random(len(places), width, dtype=np.float16) for _ in range(2))
    return keys, values, places.reshape(len(lengths), longest), np.array(lengths, np.int32)


def decided(kernel: tilec.triton.TritonKernel, about: str, *arguments: Any) -> list[str]:
    """What was chosen for this launch."""
    report = kernel.compiled(*arguments, grid=1).report["decisions"]
    return [each["chosen"] for each in report if each["about"] == about]


def products(is_masked: bool) -> tilec.triton.TritonKernel:
    """The kernel of products; the loads of its table are masked, or as long as the table."""
    text = (KERNELS / "tokens.ttir").read_text()
    masked, plain = "tt.load %29, %25, %cst_3 :", "tt.load %29 :"
    assert masked in text
    text = text if is_masked else text.replace(masked, plain)
    return tilec.triton.kernel(text, "tokens.ttir").on("emulator:check")


@pytest.mark.parametrize("lengths", [[115, 0, 37], [16, 112], [16, 16]])
def test_rows_that_products_multiply(target: str, lengths: list[int]) -> None:
    """The ring wraps, and no iteration past the last one reads the table, which ends there."""
    longest = max(lengths)
    keys, values, table, lengths_ = cache(lengths, longest, 32)
    q, out = random(len(lengths), 16, 32, dtype=np.float16), poisoned((len(lengths), 16, 32))
    kernel = products(is_masked=longest % 16 != 0)
    arguments = (q, keys, values, out, table, lengths_, longest, 32)
    kernel[len(lengths)](*arguments)
    for b, length in enumerate(lengths):
        rows = table[b, :length]
        scores = (q[b].astype(np.float64) @ keys[rows].T.astype(np.float64)).astype(np.float16)
        np.testing.assert_allclose(out[b], scores.astype(np.float64) @ values[rows], atol=0.2)
    assert decided(kernel, "pipeline", *arguments) == ["4 stages"]
    assert decided(kernel, "loads", *arguments) == ["an iteration ahead"]


def test_rows_that_one_query_weighs(target: str) -> None:
    """Each thread carries its part of two sums of rows, of which one is rounded to 16 bits before
    it is added. No request, a part of a block, several blocks."""
    lengths = [0, 7, 150]
    keys, values, table, lengths_ = cache(lengths, 150, 64)
    q, out = random(3, 64, dtype=np.float16), poisoned((3, 2, 64))
    kernel = kernel_of("query")
    arguments = (q, keys, values, out, table, lengths_, 150, 64)
    kernel[3](*arguments)
    assert np.isnan(out[0]).all()
    for b in (1, 2):
        rows = table[b, : lengths[b]]
        weighted = (q[b] * keys[rows]).astype(np.float64).sum(1)
        p = np.exp(weighted - weighted.max())
        np.testing.assert_allclose(out[b, 0], p @ values[rows] / p.sum(), atol=2e-3)
        np.testing.assert_allclose(out[b, 1], values[rows].astype(np.float64).sum(0), atol=0.05)
    assert len(decided(kernel, "carried through the loop", *arguments)) == 2
    assert decided(kernel, "loads", *arguments) == ["an iteration ahead"]
    assert decided(kernel, "warps", *arguments) == ["2"]


@pytest.mark.parametrize("count", [7, 1, 0])
def test_pages_end_where_their_table_does(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Copies of later iterations look up no page behind the last."""
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    keys, q = random(max(count, 1), 16, 32, dtype=np.float16), random(1, 16, 32, dtype=np.float16)
    table, out = RNG.permutation(max(count, 1)).astype(np.int32), poisoned((1, 16, 16))
    arguments = (q, keys, out, table, np.array([count], np.int32), len(table), 512)
    kernel = kernel_of("pages")
    kernel[1](*arguments)
    expected = q[0].astype(np.float64) @ keys[:count].astype(np.float64).sum(0).T
    np.testing.assert_allclose(out[0], expected, atol=1e-3)
    assert decided(kernel, "pipeline", *arguments) == ["4 stages"]
