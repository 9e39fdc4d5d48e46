"""Products summed in parts whose results are scattered, or stored in branches, on the emulator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples import convolution
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.mixture_of_experts import arrange, multiply_by_experts
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16


def checked(kernel: Kernel, call: Any) -> None:
    """In check mode, by turns in late mode."""
    for mode in modes():
        call(kernel.on(f"emulator:{mode}"))


def same(found: np.ndarray, expected: np.ndarray) -> None:
    error = np.abs(found.astype(float) - expected).max() / np.abs(expected).max()
    assert error < 8e-3


@pytest.mark.parametrize(("target", "parts"), [("sm_90a", 2), ("sm_90a", 4), ("sm_120a", 2)])
def test_convolution(target: str, parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are pixels, whose coordinates come in stripes; the ring wraps."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(parts)
    x = rng.standard_normal((2, 7, 9, 72)).astype(BF16)
    w = rng.standard_normal((3, 5, 72, 24)).astype(BF16)
    expected = convolution.reference(x, w, 1, 2)

    def call(kernel: Kernel) -> None:
        y = poisoned(expected.shape, BF16)
        kernel(x, w, y, PAD=2, BM=64, BN=32, BK=32)
        same(y, expected)

    checked(convolution.convolve.demanding(sum_parts=parts), call)


def test_experts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are scattered by numbers from memory, behind a gather of their weights."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(6)
    top, tokens, k, n = 2, 45, 200, 40
    choice = np.array([rng.permutation([0, 1, 3])[:top] for _ in range(tokens)])
    x = rng.standard_normal((tokens, k)).astype(BF16)
    matrices = rng.standard_normal((4, k, n)).astype(BF16)
    weights = rng.random(tokens * top, np.float32)
    slots, experts = arrange(choice, 4, 64)
    every = np.einsum("tk,tskn->tsn", x.astype(float), matrices[choice].astype(float))
    expected = every.reshape(tokens * top, n) * weights[:, None]

    def call(kernel: Kernel) -> None:
        products = poisoned(expected.shape, np.float32)
        kernel(x, matrices, slots, experts, weights, products, TOP=top, BM=64, BN=32, BK=32)
        same(products, expected)

    checked(multiply_by_experts.demanding(sum_parts=4), call)


@pytest.mark.parametrize("parts", [2, 8])
def test_groups(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole tiles are stored in one branch, those at the end of a group scattered in the other."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(parts)
    rows, k, n = (70, 0, 64, 3), 336, 40
    a = rng.standard_normal((sum(rows), k)).astype(BF16)
    b = rng.standard_normal((len(rows), k, n)).astype(BF16)
    ends = np.cumsum(rows).astype(np.int32)
    pieces = np.split(a.astype(float), ends[:-1])
    expected = np.concatenate([p @ w.astype(float) for p, w in zip(pieces, b, strict=True)])

    def call(kernel: Kernel) -> None:
        c = poisoned(expected.shape, BF16)
        kernel(a, b, c, ends, BM=64, BN=32, BK=32)
        same(c, expected)

    checked(grouped_gemm.demanding(sum_parts=parts), call)


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM))
def apart(a: tl.array, b: tl.array, c: tl.array, count: tl.array, WAY: tl.const, BM: tl.const = 64):
    """What cannot be scattered in stripes, in several ways: c[:, :32] = a @ b. `count`: how often
    each row was scattered."""
    m, rows = tl.program_id(0) * BM, tl.arange(BM)[:, None]
    acc = tl.zeros((BM, 32), tl.f32)
    for k in tl.range(0, a.shape[1], 32):
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(b, (k, 0), (32, 32)), acc)
    at = m + rows, tl.arange(32)[None, :]
    if WAY == "reads":
        acc = acc + tl.gather(c, at).to(tl.f32)
    if WAY == "loop":
        for turn in tl.range(1, c.shape[1] // 32):
            tl.store(c, (m, 32 * turn), (acc * turn).to(c.dtype))
    if WAY == "adds":
        tl.atomic_add(count, (m + tl.arange(BM),), tl.full((BM,), 1, tl.i32))
    tl.scatter(c, at, acc.to(c.dtype))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("parts", [4, 12])
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("reads", "what is behind the loop reads elsewhere in an array that it writes"),
        ("loop", "what is behind the loop stores in another loop"),
        ("adds", "stripes of the sum have no 'tile.atomic_rmw' of their own"),
    ],
)
def test_one_cta_does_what_has_no_stripes(
    way: str, reason: str, parts: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that comes last, once. Three programs, the last one ragged."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(parts)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((131, 712), (712, 32)))
    before = rng.standard_normal((131, 96)).astype(np.float16)
    product, expected = a.astype(float) @ b.astype(float), before.astype(float)
    if way == "loop":
        expected = np.concatenate([product, product, 2 * product], axis=1)
    expected[:, :32] = product + (expected[:, :32] if way == "reads" else 0)
    kernel = apart.demanding(sum_parts=parts)

    def call(kernel: Kernel) -> None:
        c, count = before.copy(), np.zeros(131, np.int32)
        kernel(a, b, c, count, WAY=way)
        same(c, expected)
        assert set(count) == {int(way == "adds")}

    checked(kernel, call)
    if target == "sm_90a" and parts == 4:
        specs = [*(f"{name}:f16[?,?:8;?:8,1]" for name in "abc"), "count:i32[?;1]"]
        (sums,) = decisions(kernel.compile(specs, {"WAY": way}, target=target), "sums")
        assert sums.startswith("in 4 parts, which meet in memory")
        assert sums.endswith(f"these are no cluster: {reason})")
