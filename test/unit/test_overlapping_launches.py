"""Compiled kernels whose launches overlap, each reading what the one before it writes."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import demanded

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.emulator import Finding, run_stream
from tilec.runtime.emulator_device import EmulatorDevice

BF16 = ml_dtypes.bfloat16
SIZES = {"BM": 64, "BN": 64, "BK": 64, "STAGES": 2, "WARP_SPECIALIZE": True}
SIDE = 128
DEMANDS: dict[str, dict[str, Any]] = {
    "persistent": {"persistent": True},
    "cluster": {"cluster": 2},
    "settled": {"settled": "b"},
}


def compiled(target: str, rows: int, **demands: Any) -> CompiledKernel:
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    kernel = demanded.demanding(num_warps=4, **demands)
    return kernel.compile(specs, SIZES | {"BM": rows}, target=target)


def chain(kernel: CompiledKernel, rows: int, mode: str) -> tuple[list[Finding], list[np.ndarray]]:
    """x1 = x0 @ w, x2 = x1 @ w, x3 = x2 @ w by tiles of so many rows: findings; x0 to x3, and w."""
    rng = np.random.default_rng(0)
    w = (rng.standard_normal((SIDE, SIDE)) / 16).astype(BF16)
    x = [rng.standard_normal((SIDE, SIDE)).astype(BF16)]
    x += [poisoned((SIDE, SIDE), BF16) for _ in range(3)]
    device = EmulatorDevice(mode)
    loaded = device.load(kernel)
    programs = (SIDE // rows, SIDE // SIZES["BN"], 1)
    runs = [device.run_of(loaded, [a, w, c], programs) for a, c in itertools.pairwise(x)]
    results = run_stream([run for run in runs if run is not None], mode)
    return [finding for result in results for finding in result.findings], [*x, w]


@pytest.mark.share(2)
@pytest.mark.parametrize(("target", "rows"), [("sm_90a", 64), ("sm_100a", 128)])
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_chain_of_products(demand: str, target: str, rows: int) -> None:
    """In check mode, and with copies that come at any time."""
    kernel = compiled(target, rows, **DEMANDS[demand])
    assert "griddepcontrol.wait" in kernel.ptx
    for mode in ("check", "late") if demand == "settled" else ("check",):
        found, (*x, w) = chain(kernel, rows, mode)
        assert found == []
        for a, c in itertools.pairwise(x):
            expected = a.astype(np.float64) @ w.astype(np.float64)
            most = np.abs(expected).max()
            np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=2e-2 * most)


def test_a_promise_that_is_not_kept_is_found() -> None:
    found, _ = chain(compiled("sm_90a", 64, settled="a"), 64, "check")
    assert {(f.kind, f.memory) for f in found} == {("race", "global")}


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def added_to_next(x: tl.array, y: tl.array, B: tl.const):
    """y[i] = x[i] + x[i + 1], of which other CTAs have written some."""
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i, B) + tl.load(x, i + 1, B))


@tilec.kernel(grid=lambda y: y.shape[0])
def summed_rows(x: tl.array, y: tl.array, N: tl.const):
    """y[i] = x[i] + x[i + 1] by a warp, whose programs share CTAs."""
    at = tl.program_id(0)
    v = tl.where(tl.arange(N) < 2, tl.load(x, at, N), 0.0)
    tl.store(y, at, tl.sum(v))


@pytest.mark.parametrize("kernel", [added_to_next, summed_rows], ids=lambda each: each.name)
def test_a_chain_without_roles(kernel: Kernel[...]) -> None:
    """Of sums of neighbours, each launch reading what the one before it writes."""
    constants = {"B": 64} if kernel is added_to_next else {"N": 32}
    compiled = kernel.compile(["x:f32[?]", "y:f32[?]"], constants, target="sm_90a")
    assert compiled.starts_early
    device, size = EmulatorDevice("check"), 203
    x = [np.random.default_rng(0).standard_normal(size).astype(np.float32)]
    x += [poisoned((size,), np.float32) for _ in range(3)]
    loaded, programs = device.load(compiled), -(-size // 64) if "B" in constants else size
    runs = [device.run_of(loaded, list(pair), (programs, 1, 1)) for pair in itertools.pairwise(x)]
    results = run_stream([run for run in runs if run is not None], "check")
    assert [finding for result in results for finding in result.findings] == []
    for a, b in itertools.pairwise(x):
        np.testing.assert_allclose(b, a + np.append(a[1:], np.float32(0)), rtol=1e-6)
