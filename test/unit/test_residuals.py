"""Sums of a product of which a thread holds 128, what is computed of them, and a residual that is
added: right whatever the sizes, and without spills where there is a ptxas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble, locate_tool, tool_version
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target

ARRAYS = [f"{name}:f16[?,?:8;?:8,1]" for name in "abrc"]
ROWS = [ARRAYS[0], ARRAYS[1], "bias:f16[?:8]", *ARRAYS[2:]]


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def finished_product(
    a: tl.array, b: tl.array, bias: tl.array, r: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 256, BK: tl.const = 64,
):  # fmt: skip
    """c = y / (1 + exp(-y)) + r of y = a @ b + bias."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    y = acc + tl.load(bias, n, BN).to(tl.f32)[None, :]
    finished = y / (1 + tl.exp(-y))
    tl.store(c, (m, n), (finished + tl.load(r, (m, n), (BM, BN)).to(tl.f32)).to(c.dtype))


@pytest.mark.filterwarnings("ignore:.*registers")  # of rows that come element by element
@pytest.mark.parametrize("columns", [296, 265])
def test_results(columns: int) -> None:
    """Two programs a row of tiles, both ragged; rows of whole vectors, and of elements alone."""
    rng = np.random.default_rng(columns)
    shapes: dict[str, Any] = {"a": (70, 72), "b": (72, columns), "bias": (columns,)}
    a, b, bias, r = (
        rng.standard_normal(shape).astype(np.float16) for shape in (*shapes.values(), (70, columns))
    )
    c = poisoned((70, columns), np.float16)
    finished_product.on("emulator")(a, b, bias, r, c)
    y = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(c, y / (1 + np.exp(-y)) + r, rtol=2e-3, atol=2e-2)


@pytest.mark.skipif(locate_tool("ptxas") is None, reason="there is no ptxas")
def test_they_stay_in_registers() -> None:
    """But for 28 bytes that ptxas 13.0 and 13.1 store and load; all at once it was 884."""
    compiled = finished_product.compile(ROWS, {"BM": 128}, target="sm_90a")
    assert not [d for d in compiled.report["decisions"] if d["about"] == "registers"]
    release = tuple(map(int, tool_version(locate_tool("ptxas") or "").split(".")[:2]))
    most = 0 if release > (13, 1) else 2 * 28
    assert assemble(compiled.ptx, find_target("sm_90a")).spills <= most
