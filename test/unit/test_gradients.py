"""The gradients of attention on the emulator, where tensor copies bring all that a step reads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

from tilec.compile.assembler import assemble
from tilec.examples.attention_backward import reference
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.ops.gradient_kernels import key_gradients, query_gradients

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(("target", "causal"), [("sm_90a", True), ("sm_100a", False)])
@pytest.mark.parametrize("few", ["keys", "queries"])
def test_more_blocks_than_slots(
    few: str, target: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven blocks a program, the last not full, where six slots fit; two heads on one of keys."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(len(few))
    lengths = {"queries": 408, "keys": 408} | {few: 72}
    q, do = rng.standard_normal((2, 1, 2, lengths["queries"], 16)).astype(BF16)
    k, v = rng.standard_normal((2, 1, 1, lengths["keys"], 16)).astype(BF16)
    o, logs, dq, dk, dv = reference(q, k, v, do, causal, 0.25)
    logs, delta = logs.astype(np.float32), (o * do.astype(np.float64)).sum(-1).astype(np.float32)
    fixed = {"D": 16, "SHARED": 2, "CAUSAL": causal, "BM": 64, "BN": 64}
    if few == "keys":
        kernel, inputs, expected = key_gradients, (q, k, v, do, logs, delta), (dk, dv)
    else:
        kernel, inputs, expected = query_gradients, (q, k, v, o.astype(BF16), do, logs), (delta, dq)
    found = [poisoned(right.shape, right.dtype if right is delta else BF16) for right in expected]
    kernel.on("emulator:check")(*inputs, *found, 0.25, **fixed)
    for one, right in zip(found, expected, strict=True):
        assert np.abs(one.astype(np.float64) - right).max() <= 1e-2 * np.abs(right).max()


@pytest.fixture(scope="module", name="kernels")
def compiled_kernels() -> dict[str, CompiledKernel]:
    """Of heads of 128 elements, causal, with the tiles that `tl.auto` takes for 4 x 16 of them."""
    shape = (1, 1, 4096, 128)
    q, k, v, o, do, dq, dk, dv = (np.empty(shape, BF16) for _ in range(8))
    logs, delta = (np.empty(shape[:3], np.float32) for _ in range(2))
    inputs, fixed = (do, logs, delta), {"D": 128, "CAUSAL": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEC_TARGET", "sm_90a")
        there = key_gradients.on("emulator"), query_gradients.on("emulator")
        return {
            "key": there[0].compiled(q, k, v, *inputs, dk, dv, 0.1, BM=64, BN=128, **fixed),
            "query": there[1].compiled(q, k, v, o, *inputs, dq, 0.1, BM=128, BN=96, **fixed),
        }


@pytest.mark.parametrize("name", ["key", "query"])
def test_steps_have_no_barriers_and_products_run_side_by_side(
    name: str, kernels: dict[str, CompiledKernel]
) -> None:
    """Nothing crosses warps in a step: logs and deltas come by tensor copies, in the layout that
    each thread wants."""
    kernel, product = kernels[name], "wgmma.mma_async"
    steps = kernel.ptx[kernel.ptx.index(product) : kernel.ptx.rindex(product)]
    assert steps.count(product) > 16
    assert "bar.sync" not in steps
    assert "ld.global" not in steps
    assert any("side by side" in one for one in decisions(kernel, "matrix instructions"))


@pytest.mark.parametrize("name", ["key", "query"])
def test_ptxas_neither_spills_nor_serialises(name: str, kernels: dict[str, CompiledKernel]) -> None:
    """No operand of a product in registers is written while another product runs (C7513)."""
    taken = assemble(kernels[name].ptx, find_target("sm_90a"))
    assert taken.spills == 0
    assert not taken.messages


def test_queries_that_stay_leave_memory_to_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two slots for 192 queries and their gradients, 98304 bytes, and four for 96 keys and values,
    not two of each."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    shape = (1, 1, 4096, 64)
    q, k, v, o, do, dq = (np.empty(shape, BF16) for _ in range(6))
    logs, delta = (np.empty(shape[:3], np.float32) for _ in range(2))
    fixed = {"D": 64, "BM": 192, "BN": 96}
    there = query_gradients.on("emulator")
    kernel = there.compiled(q, k, v, o, do, logs, delta, dq, 0.1, **fixed)
    assert [one["stages"] for one in kernel.report["decisions"] if "stages" in one] == [4]
