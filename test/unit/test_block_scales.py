"""`tl.dot_scaled` by the instructions that read scales, where the target has them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.assembler import assemble
from tilec.target import TARGETS

TARGET = "sm_100a"
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E2M1, E8M0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu
PAIR = np.dtype([("float4_e2m1fn_x2", np.uint8)])


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def scaled_matmul(
    a: tl.array,
    a_scale: tl.array,
    b: tl.array,
    b_scale: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 128,
    BLOCKS: tl.const = 4,
):
    """c = (a * a_scale) @ (b * b_scale); BK elements and BLOCKS scales a step."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(tl.cdiv(a.shape[1], BK)):
        left, right = tl.load(a, (m, k * BK), (BM, BK)), tl.load(b, (k * BK, n), (BK, BN))
        left_scale = tl.load(a_scale, (m, k * BLOCKS), (BM, BLOCKS))
        right_scale = tl.load(b_scale, (k * BLOCKS, n), (BLOCKS, BN))
        acc = tl.dot_scaled(left, left_scale, right, right_scale, acc)
    tl.store(c, (m, n), acc)


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def arranged_matmul(
    a: tl.array,
    a_scale: tl.array,
    b: tl.array,
    b_scale: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 128,
    BLOCKS: tl.const = 4,
):
    """The same of scales (rows / 128, blocks / 4, 2, 256), arranged as the hardware reads them."""
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(tl.cdiv(a.shape[1], BK)):
        left = tl.load(a, (m * BM, k * BK), (BM, BK))
        right = tl.load(b, (k * BK, n * BN), (BK, BN))
        at = k * (BLOCKS // 4)
        left_scale = tl.load(a_scale, (m * (BM // 128), at, 0, 0), (BM // 128, BLOCKS // 4, 2, 256))
        right_scale = tl.load(
            b_scale, (n * (BN // 128), at, 0, 0), (BN // 128, BLOCKS // 4, 2, 256)
        )
        left_scale, right_scale = tl.block_scales(left_scale), tl.block_scales(right_scale).T
        acc = tl.dot_scaled(left, left_scale, right, right_scale, acc)
    tl.store(c, (m * BM, n * BN), acc)


def arranged(scales: np.ndarray) -> np.ndarray:
    """Scales (rows, blocks) in pieces of 128 x 4, the last ones filled up."""
    rows, blocks = scales.shape
    whole = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
    whole[:rows, :blocks] = scales.view(np.uint8)
    pieces = whole.reshape(whole.shape[0] // 128, 4, 32, whole.shape[1] // 4, 4)
    flat = np.ascontiguousarray(pieces.transpose(0, 3, 2, 1, 4))
    return flat.reshape(*flat.shape[:2], 2, 256).view(scales.dtype)


def pairs(x: np.ndarray) -> np.ndarray:
    """Two numbers of the last axis a byte, the first in the low half."""
    codes = x.view(np.uint8)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(PAIR)


def operand(rng: Any, rows: int, k: int, kind: Any, scale: Any, block: int) -> tuple[Any, ...]:
    """(rows, k) numbers as a kernel takes them, their scales, and what they mean in float64."""
    x = (2 * rng.standard_normal((rows, k))).astype(kind)
    if scale is E8M0:
        factors = rng.integers(121, 133, (rows, k // block)).astype(np.uint8).view(E8M0)
    else:
        factors = np.abs(rng.standard_normal((rows, k // block))).astype(scale)
    wide = x.astype(np.float64) * np.repeat(factors.astype(np.float64), block, 1)
    return (pairs(x) if kind is E2M1 else x), factors, wide


KINDS = {
    "e4m3": ((E4M3, E4M3), E8M0, 32, "mxf8f6f4.block_scale.scale_vec::1X", 32),
    "e5m2 e4m3": ((E5M2, E4M3), E8M0, 32, "mxf8f6f4.block_scale.scale_vec::1X", 32),
    "mx e2m1": ((E2M1, E2M1), E8M0, 32, "mxf4.block_scale.scale_vec::2X", 64),
    "nv e2m1": ((E2M1, E2M1), E4M3, 16, "mxf4nvf4.block_scale.scale_vec::4X", 64),
}


def check(
    device: str,
    kind: str,
    sizes: tuple[int, int, int],
    tile: tuple[int, int, int],
    kernel: Any = scaled_matmul,
) -> Any:
    """Random operands and scales against float64; gives the compiled kernel."""
    (left, right), scale, block, _, _ = KINDS[kind]
    rng = np.random.default_rng(sum(sizes))
    (m, n, k), (bm, bn, bk) = sizes, tile
    a, a_scale, x = operand(rng, m, k, left, scale, block)
    b, b_scale, y = operand(rng, n, k, right, scale, block)
    c = np.full((m, n), np.nan, np.float32)
    constants = {
        "BM": bm,
        "BN": bn,
        "BK": bk // 2 if left is E2M1 else bk,
        "BLOCKS": bk // block,
    }
    arguments = (a, a_scale, b.T, b_scale.T, c)
    if kernel is not scaled_matmul:
        arguments = (a, arranged(a_scale), b.T, arranged(b_scale), c)
    kernel.on(device)(*arguments, **constants)
    expected = x @ y.T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    return kernel.compiled(*arguments, **constants)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    _, _, _, name, depth = KINDS[kind]
    compiled = check("emulator:check", kind, (200, 144, 640), (128, 128, 256))
    assert compiled.ptx.count(f"tcgen05.mma.cta_group::1.kind::{name}") == 256 // depth
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0


@pytest.mark.parametrize("kind", KINDS)
def test_scales_that_lie_as_they_are_copied(kind: str) -> None:
    """They take the same way as the operands: tensor copies, the multiplying warp, no thread."""
    compiled = check("emulator:late", kind, (200, 144, 640), (128, 128, 256), arranged_matmul)
    assert compiled.ptx.count("tcgen05.cp") == 256 // 128 * 2 * (2 if "nv" in kind else 1)
    found = {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}
    assert "1 multiplying" in found["warp specialisation"]
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0
