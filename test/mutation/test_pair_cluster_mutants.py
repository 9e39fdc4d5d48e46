"""Two pairs of CTAs that multicast to each other, broken in one place at a time: all are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hopper_kernels import demanded
from mlir import ir
from pipelined_mutants import copy_of, finish
from ring_plans import RingPlan
from role_mutants import BF16, changed, drop

from tilec.compile.compiler import Compilation, compiled_kernel, lower_to
from tilec.dialects.gpu_tile import (
    BarrierExpectOp,
    BarrierInitOp,
    Tcgen05MulticastCommitOp,
    TmaPairMulticastOp,
)
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import find_ops
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

STAGES = 2
SIZES = {"BM": 128, "BN": 64, "BK": 32, "STAGES": STAGES, "WARP_SPECIALIZE": True}
PAIR_BITS = 0b11


def _own_pair_only(op: ir.Operation, slots: int) -> None:
    """A mask loses the CTAs of the other pair of even rank."""
    with ir.InsertionPoint(op), op.location:
        number = next(n for n, v in enumerate(op.operands) if v == op.opview.mask)
        op.operands[number] = binary("arith.andi", op.operands[number], i32_constant(PAIR_BITS))


def _fewer(op: ir.Operation, slots: int) -> None:
    if op.opview.count > 1:
        changed("count", -1)(op, slots)


BREAKS: dict[str, tuple[type, int, Callable[[ir.Operation, int], None]]] = {
    "gives back in its own pair only": (Tcgen05MulticastCommitOp, 0, _own_pair_only),
    "tells nobody of its sum": (Tcgen05MulticastCommitOp, -1, drop),
    "loads for its own pair only": (TmaPairMulticastOp, 0, _own_pair_only),
    "loads nothing": (TmaPairMulticastOp, -1, drop),
    "expects less": (BarrierExpectOp, 0, changed("bytes", -16)),
    "has its slot back too early": (BarrierInitOp, 1, _fewer),
}


class Subject:
    """The kernel at the end of the tile pipeline, what it multiplies and what it must give."""

    def __init__(self, cluster: tuple[int, int]) -> None:
        rng = np.random.default_rng(cluster)
        m, n = 128 * cluster[0], 64 * cluster[1]
        self.grid = (*cluster, 1)
        self.a = rng.standard_normal((m, 32 * RingPlan(STAGES).iterations)).astype(BF16)
        self.b = rng.standard_normal((self.a.shape[1], n)).astype(BF16)
        self.expected = self.a.astype(np.float64) @ self.b.astype(np.float64)
        specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
        kernel = demanded.demanding(cluster=cluster, num_warps=4)
        module = kernel.source_module(specs, SIZES)
        self.job = lower_to(module, find_target("sm_100a"), "gpu_tile")

    def judge(self, job: Compilation) -> str:
        """A finding's kind, or how it ends without."""
        job.text = finish(job)
        device, c = EmulatorDevice("check"), poisoned(self.expected.shape, BF16)
        try:
            device.launch(device.load(compiled_kernel(job)), [self.a, self.b, c], self.grid)
        except FindingsError as error:
            return f"finding: {error.findings[0].kind}"
        except EmulatorError as error:
            return f"finding: {error.kind}"
        most = np.abs(self.expected).max()
        right = np.allclose(c.astype(np.float64), self.expected, rtol=0, atol=1e-2 * most)
        return "survived" if right else "wrong result"


@pytest.fixture(scope="module", params=[(2, 2), (4, 1)], ids=["beside", "below"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(request.param)


def test_the_unbroken_cluster_passes(subject: Subject) -> None:
    assert subject.judge(copy_of(subject.job)) == "survived"


@pytest.mark.parametrize("name", BREAKS)
def test_all_are_found(subject: Subject, name: str) -> None:
    kind, number, mutate = BREAKS[name]
    job = copy_of(subject.job)
    with job.module.context:
        mutate(find_ops(job.module.operation, kind)[number], STAGES)
    assert subject.judge(job).startswith("finding")
