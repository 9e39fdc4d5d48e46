"""Products with weights that are unpacked on the way, as authors pack them: right, and filled in by
warps of their own."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checked_calls import assert_right

import tilec
import tilec.language as tl

BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
GRID = lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN))  # noqa: E731
M, N, K, GROUP = 70, 96, 320, 32


@tilec.kernel(grid=GRID)
def neighbouring_rows(
    a: tl.array, w: tl.array, s: tl.array, c: tl.array, BM: tl.const, BN: tl.const
):
    """w (K / 2, N): signed rows 2i and 2i + 1 in a byte; s (K / GROUP, N)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], GROUP):
        pairs = tl.load(w, (k // 2, n), (GROUP // 2, BN))
        codes = tl.permute(tl.join(((pairs << 4) >> 4, pairs >> 4)), (0, 2, 1))
        weights = tl.reshape(codes, (GROUP, BN)).to(a.dtype) * tl.load(s, (k // GROUP, n), (1, BN))
        acc = tl.dot(tl.load(a, (m, k), (BM, GROUP)), weights, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=GRID)
def neighbouring_columns(
    a: tl.array, w: tl.array, s: tl.array, c: tl.array, BM: tl.const, BN: tl.const
):
    """w (N, K / 2): signed columns 2i and 2i + 1 in a byte; s (N, K / GROUP)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], GROUP):
        pairs = tl.load(w, (n, k // 2), (BN, GROUP // 2))
        codes = tl.reshape(tl.join(((pairs << 4) >> 4, pairs >> 4)), (BN, GROUP))
        weights = codes.to(a.dtype) * tl.load(s, (n, k // GROUP), (BN, 1))
        acc = tl.dot(tl.load(a, (m, k), (BM, GROUP)), weights.T, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=GRID)
def bytes_along_k(a: tl.array, w: tl.array, s: tl.array, c: tl.array, BM: tl.const, BN: tl.const):
    """w (N, K) of a byte an element; s (N,), of which a block of k has the same."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        weights = tl.load(w, (n, k), (BN, 64)).to(a.dtype) * tl.load(s, (k // 64,), ())
        acc = tl.dot(tl.load(a, (m, k), (BM, 64)), weights.T, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def nibbles(rng: np.random.Generator, shape: tuple[int, int], axis: int) -> tuple[Any, Any]:
    """Signed numbers of 4 bits, and they two a byte along an axis."""
    codes = rng.integers(-8, 8, shape).astype(np.int8)
    low, high = (np.take(codes, range(at, shape[axis], 2), axis) for at in (0, 1))
    return codes.astype(float), (low & 15) | (high << 4)


def case(kernel: Any, dtype: Any) -> tuple[list[Any], Any]:
    """Arguments but the result, and the weights (K, N) in float64."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((M, K)).astype(dtype)
    if kernel is bytes_along_k:
        w = rng.integers(-128, 128, (N, K)).astype(np.int8)
        w = w if dtype == BF16 else (w / 32).astype(F8)
        s = rng.random(K // 64).astype(dtype)
        return [a, w, s], (w.astype(float) * np.repeat(s.astype(float), 64)).T
    axis = 0 if kernel is neighbouring_rows else 1
    codes, w = nibbles(rng, (K, N) if axis == 0 else (N, K), axis)
    s = rng.random((K // GROUP, N) if axis == 0 else (N, K // GROUP)).astype(dtype)
    weights = codes * np.repeat(s.astype(float), GROUP, axis)
    return [a, w, s], weights if axis == 0 else weights.T


@pytest.mark.parametrize("dtype", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("kernel", [neighbouring_rows, neighbouring_columns, bytes_along_k])
def test_weights_are_unpacked_by_warps_of_their_own(
    kernel: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    arguments, weights = case(kernel, dtype)
    c = np.full((M, N), np.nan, np.float32)
    on_emulator = kernel.on("emulator:check")
    on_emulator(*arguments, c, BM=64, BN=64)
    expected = arguments[0].astype(float) @ weights
    # Weights are rounded to the dtype of a before they are multiplied.
    assert np.abs(c - expected).max() < 2e-2 * np.abs(expected).max()
    compiled = on_emulator.compiled(*arguments, c, BM=64, BN=64)
    told = [f"{entry['about']}: {entry['chosen']}" for entry in compiled.report["decisions"]]
    assert "producer: loads and stores" in told
    assert any(text.startswith("warp specialisation: 4 loading warps") for text in told)
    assert not any(text.startswith("layout conversion") for text in told)
    name = "f16" if dtype == np.float16 else "bf16"
    assert f"mul.{name}x2" in compiled.ptx
    assert "cvt.rn.f16.s" not in compiled.ptx
    assert "cvt.rn.bf16.s" not in compiled.ptx


@tilec.kernel(grid=GRID)
def scaled_columns(a: tl.array, w: tl.array, s: tl.array, c: tl.array, BM: tl.const, BN: tl.const):
    """w (N, K) of a byte an element; s (N, K / 128), loaded as a row of numbers."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        scale = tl.load(s, (n, k // 128), (BN,), dims=(0,))
        weights = tl.load(w, (n, k), (BN, 64)).to(a.dtype) * scale[:, None]
        acc = tl.dot(tl.load(a, (m, k), (BM, 64)), weights.T, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize("tile", [(64, 256), (128, 128)])
@pytest.mark.parametrize("k", [64, 128 * 7])
def test_numbers_of_rows_are_loaded_as_a_load_role_wants_them(
    tile: tuple[int, int], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there are more of them than threads; the weights come an iteration ahead."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rows, columns, bm, bn = 130, 264, *tile
    rng = np.random.default_rng(7)
    a = rng.standard_normal((rows, k)).astype(BF16)
    w = rng.integers(-128, 128, (columns, k)).astype(np.int8)
    s = rng.uniform(0.5, 2, (columns, -(-k // 128))).astype(BF16)
    arguments = [a, w, s, np.full((rows, columns), np.nan, np.float32)]
    weights = (w.astype(BF16) * np.repeat(s, 128, 1)[:, :k]).astype(float)
    assert_right(scaled_columns, arguments, {3: a.astype(float) @ weights.T}, BM=bm, BN=bn)
    text = scaled_columns.report(*arguments, BM=bm, BN=bn)
    assert "4 loading warps" in text
    assert "producer: loads an iteration ahead" in text
