"""Warpgroups that cut the columns of a tile where no widest panel ends: b, contiguous along n, lies
in panels that each instruction reads whole, as the copy engine brings it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions, gated
from test_warp_specialized import assert_clean, assert_specialised, exact, normal, run

from tilec.examples.matmul import matmul


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("columns", "panel", "panels"),
    [(192, 32, 6), (160, 16, 10), (224, 16, 14), (320, 32, 10), (144, 8, 18)],
)
def test_two_warpgroups_cut_columns(columns: int, panel: int, panels: int, dtype: type) -> None:
    """Each takes half of the columns: a multiple of the panel's, and not of the widest one's."""
    a, b = normal(136, 200, dtype=dtype), normal(200, 2 * columns - 24, seed=1, dtype=dtype)
    kernel = matmul.demanding(num_warps=8)
    sizes = {"BM": 64, "BN": columns, "BK": 64}
    if panel == 8:  # no panel of 32 bytes ends where the instructions meet: b is rearranged
        kernel = run(kernel, [a, b], exact(a) @ exact(b), **sizes)
        assert any("no" in one for one in decisions(kernel, "tensor map"))
        return
    kernel = run(kernel, [a, b], exact(a) @ exact(b), **sizes)
    assert_specialised(kernel, "one group in flight")
    assert decisions(kernel, "asynchronous copy") == ["TMA (a tensor map describes the array)"] * 2
    bits = {16: 1, 32: 2}[panel]
    shared = f"S<{bits},4,3> o (64,({panel},{panels})):({panel},(1,{64 * panel}))"
    layouts = [one.get("layout") for one in kernel.report["decisions"]]
    assert shared in layouts


def test_gates_share_the_rows() -> None:
    """Two sums of half of the columns each."""
    a, b, g = normal(131, 160), normal(160, 200, seed=1), normal(160, 200, seed=2)
    expected = (exact(a) @ exact(b)) * (exact(a) @ exact(g))
    sizes = {"BM": 64, "BN": 192, "BK": 64}
    kernel = run(gated.demanding(num_warps=8), [a, b, g], expected, tolerance=2e-2, **sizes)
    assert len(decisions(kernel, "asynchronous copy")) == 3
    assert_clean(kernel)
