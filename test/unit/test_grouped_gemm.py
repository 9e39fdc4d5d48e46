"""Grouped products: every row gets its group's matrix, whatever the sizes; also in roles."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.jit import Kernel

SPECS = ["a:f16[?:8,?:8;?:8,1]", "b:f16[?,?:8,?:8;?:8,?:8,1]", "c:f16[?:8,?:8;?:8,1]"]


def multiply(kernel: Kernel, sizes: list[int], n: int, k: int, **constants: int) -> None:
    rng = np.random.default_rng(sum(sizes))
    ends = np.cumsum(sizes, dtype=np.int32)
    a = rng.standard_normal((sum(sizes), k)).astype(np.float16)
    b = rng.standard_normal((len(sizes), k, n)).astype(np.float16)
    c = np.full((sum(sizes), n), np.nan, np.float16)
    kernel(a, b, c, ends, **constants)
    for end, size, matrix in zip(ends, sizes, b, strict=True):
        expected = a[end - size : end].astype(float) @ matrix.astype(float)
        found = c[end - size : end].astype(float)
        scale = np.max(np.abs(expected), initial=1.0)
        assert np.max(np.abs(found - expected), initial=0.0) <= 1e-3 * scale


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_groups_of_any_size(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    on_emulator = grouped_gemm.on("emulator")
    for sizes in ([1], [0, 0, 3], [64, 64], [65, 0, 1, 130], [0, 7, 0]):
        multiply(on_emulator, sizes, 40, 72, BM=64, BN=32, BK=64)


def test_the_loading_role_finds_the_groups_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads where groups end, one thread for all; nothing races."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    constants = {"BM": 64, "BN": 32, "BK": 64}
    compiled = grouped_gemm.compile([*SPECS, "ends:i32[?;1]"], constants, target="sm_90a")
    decided = {entry["about"]: entry["chosen"] for entry in compiled.report["decisions"]}
    assert decided["warp specialisation"].startswith("1 loading warp, 4 computing")
    multiply(grouped_gemm.on("emulator:check"), [65, 0, 24, 7], 40, 136, **constants)


def test_what_the_kernel_writes_is_not_loaded_ahead() -> None:
    @tilec.kernel(grid=lambda c: 1)
    def moving(a: tl.array, b: tl.array, c: tl.array, at: tl.array):
        m = tl.load(at, (0,), ())
        acc = tl.zeros((64, 32), tl.f32)
        for k in tl.range(0, a.shape[1], 64):
            acc = tl.dot(tl.load(a, (m, k), (64, 64)), tl.load(b, (k, 0), (64, 32)), acc)
        tl.store(c, (m, 0), acc.to(c.dtype))
        tl.store(at, (0,), m + 64)

    specs = [SPECS[0], "b:f16[?:8,?:8;?:8,1]", SPECS[2], "at:i32[?;1]"]
    decisions = moving.compile(specs, {}, target="sm_90a").report["decisions"]
    (decided,) = [entry for entry in decisions if entry["about"] == "warp specialisation"]
    assert decided["chosen"] == "no"
    assert "writes an array that a copy reads" in decided["why"]
