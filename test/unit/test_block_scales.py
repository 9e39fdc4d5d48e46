"""`tl.dot_scaled` by the instructions that read scales, where the target has them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scaled_kernels import scaled_matmul
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.examples.block_scaled_matmul import arranged, block_scaled_matmul, packed
from tilec.hardware.target import TARGETS
from tilec.ops.scaled_kernel import scaled_product

TARGET = "sm_100a"
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E2M3, E3M2 = ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn
E2M1, E8M0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


def operand(rng: Any, rows: int, k: int, kind: Any, scale: Any, block: int) -> tuple[Any, ...]:
    """(rows, k) numbers as a kernel takes them, their scales, and what they mean in float64."""
    x = (2 * rng.standard_normal((rows, k))).astype(kind)
    if scale is E8M0:
        factors = rng.integers(121, 133, (rows, k // block)).astype(np.uint8).view(E8M0)
    else:
        factors = np.abs(rng.standard_normal((rows, k // block))).astype(scale)
    wide = x.astype(np.float64) * np.repeat(factors.astype(np.float64), block, 1)
    return packed(x), factors, wide


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
        "BYTES": bk // 2 if left is E2M1 else bk,
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
    compiled = check("emulator:late", kind, (200, 144, 640), (128, 128, 256), block_scaled_matmul)
    assert compiled.ptx.count("tcgen05.cp") == 256 // 128 * 2 * (2 if "nv" in kind else 1)
    found = {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}
    assert "1 multiplying" in found["warp specialisation"]
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0


@pytest.mark.parametrize(
    ("kinds", "device"),
    [((E4M3, E2M1), "emulator:check"), ((E3M2, E2M3), "emulator:late")],
    ids=["8 by 4", "6 by 6"],
)
def test_narrower_numbers_become_wider_ones(kinds: tuple[Any, Any], device: str) -> None:
    """Beside 8 bits; in registers, and so without a multiplying warp."""
    rng = np.random.default_rng(0)
    a, a_scale, x = operand(rng, 140, 320, kinds[0], E8M0, 32)
    b, b_scale, y = operand(rng, 136, 320, kinds[1], E8M0, 32)
    c = np.full((140, 136), np.nan, np.float32)
    arguments = (a, arranged(a_scale), b.T, arranged(b_scale), c, 0, 0, 0, 0, 1.0, 0)
    kernel = scaled_product.on(device)
    kernel(*arguments, ARRANGED=True)
    expected = x @ y.T
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    compiled = kernel.compiled(*arguments, ARRANGED=True)
    assert compiled.ptx.count("kind::mxf8f6f4.block_scale") == 4
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0


@tilec.kernel(grid=(1,))
def plain_product(a: tl.array, b: tl.array, c: tl.array, K: tl.const, L: tl.const):
    """c = a @ b without scales."""
    left, right = tl.load(a, (0, 0), (64, K)), tl.load(b, (0, 0), (L, 32))
    tl.store(c, (0, 0), tl.dot(left, right))


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("kinds", [(E2M1, E3M2), (E2M3, E4M3)], ids=["4 by 6", "6 by 8"])
def test_without_scales(
    kinds: tuple[Any, Any], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    a, b = (
        (2 * rng.standard_normal((rows, 64))).astype(k)
        for rows, k in zip((64, 32), kinds, strict=True)
    )
    c = np.full((64, 32), np.nan, np.float32)
    left, right = packed(a), packed(b).T
    plain_product.on("emulator:check")(left, right, c, K=left.shape[1], L=right.shape[0])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "tile", "demands"),
    [
        ("e4m3", (256, 128, 128), {}),
        ("nv e2m1", (128, 256, 128), {"persistent": "dynamic"}),
        ("e4m3", (128, 128, 128), {"cluster": 2}),
    ],
    ids=["rows", "columns", "cluster"],
)
def test_larger_tiles_and_demands(
    kind: str, tile: tuple[int, int, int], demands: dict[str, Any]
) -> None:
    """Scales of several pieces; CTAs of a cluster share their copies, not their products."""
    check("emulator:check", kind, (300, 200, 256), tile, block_scaled_matmul.demanding(**demands))
