"""Whole rows of products, whose sums fill the registers of a warpgroup: two take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile_shapes import H200, choices, heads

import tilec
import tilec.language as tl
from tilec.call.call_class import class_of
from tilec.call.specialization import specialize
from tilec.ops.attention_kernel import attention


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def end_of_layer(
    x: tl.array, w: tl.array, bias: tl.array, old: tl.array, kept: tl.array, y: tl.array,
    N: tl.const, BM: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """kept = old + x w + bias, y the same less each row's mean, by its deviation."""
    m = tl.program_id(0) * BM
    acc = tl.zeros((BM, N), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (k, 0), (BK, N)), acc)
    acc += tl.load(bias, 0, N).to(tl.f32)[None, :] + tl.load(old, (m, 0), (BM, N)).to(tl.f32)
    tl.store(kept, (m, 0), acc.to(kept.dtype))
    off = acc - (tl.sum(acc, 1) / N)[:, None]
    off *= tl.rsqrt(tl.sum(off * off, 1) / N + 1e-5)[:, None]
    tl.store(y, (m, 0), off.to(y.dtype))


def compiled(rows: int, columns: int, inner: int, **demands: Any) -> Any:
    kernel = end_of_layer.demanding(**demands) if demands else end_of_layer
    names = {"x": (rows, inner), "w": (inner, columns), "bias": (columns,)}
    names |= dict.fromkeys(("old", "kept", "y"), (rows, columns))
    dims = {1: "[?:8]", 2: "[?,?:8;?:8,1]"}
    specs = [f"{name}:bf16{dims[len(shape)]}" for name, shape in names.items()]
    return kernel.compile(specs, {"N": columns}, target="sm_90a", sizes=names)


def test_rows_of_256_columns_keep_the_wide_instructions() -> None:
    """By four warps they take more registers than there are; 32 rows by mma.sync took 27.4 us for
    12814 x 256 x 448 (H200)."""
    found = compiled(12814, 256, 448)
    assert found.constants["BM"] == 64
    assert "wgmma.mma_async" in found.ptx
    assert found.threads > 8 * 32


def test_what_the_author_says_of_warps_stays() -> None:
    assert compiled(12814, 256, 448, num_warps=4).threads <= (4 + 4) * 32


def test_products_that_wait_for_each_other_keep_their_warps() -> None:
    values = heads(4, 8, 1024, 128)
    call = class_of(specialize(attention.parameters, values).parameters, values, H200)
    assert all(tiles.warps is None for tiles in choices(attention, values).order(call))


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_rows_are_right(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(1)
    x, w, bias, old = (
        (rng.standard_normal(shape) * 0.3).astype(np.float16)
        for shape in ((100, 72), (72, 256), (256,), (100, 256))
    )
    kept, y = (np.full((100, 256), np.nan, np.float16) for _ in range(2))
    end_of_layer.on(f"emulator:{mode}")(x, w, bias, old, kept, y, N=256)
    wide = [a.astype(np.float64) for a in (x, w, bias, old)]
    total = wide[0] @ wide[1] + wide[2] + wide[3]
    np.testing.assert_allclose(kept, total, rtol=2e-3, atol=4e-3)
    off = total - total.mean(1, keepdims=True)
    off /= np.sqrt((off * off).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, off, rtol=4e-3, atol=4e-3)
