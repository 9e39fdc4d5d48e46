"""A rotated loop of products in tensor memory, broken in one place at a time: check mode finds all.

The rings come round twice; broken are the waits, commits and syncs of the warps that compute, and
the slots of sums that they take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from mlir import ir
from pipelined_mutants import copy_of, finish
from ring_plans import RingPlan
from role_mutants import drop, flip, moved
from rotated_kernels import BF16, draw, expected_of, fading
from shares import share_of_each

from tilec.compile.compiler import Compilation, compiled_kernel, lower_to
from tilec.dialects.gpu_tile import (
    BarrierWaitOp,
    RoleOp,
    SlotOp,
    SyncOp,
    Tcgen05CommitOp,
    Tcgen05MmaOp,
)
from tilec.dialects.gpu_tile.types import is_tensor_buffer
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.passes.rewriting.walk import find_ops
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

SIZES = {"D": 64, "BM": 64, "BN": 32, "STAGES": 3}
BLOCKS = RingPlan(SIZES["STAGES"]).iterations


@dataclass(frozen=True)
class Break:
    """A kind of op, and what is done to one of them. `slots`: of the ring that it belongs to."""

    ops: type
    mutate: Callable[[ir.Operation, int], None]
    slots: int = 0


BREAKS = {
    "does not wait": Break(BarrierWaitOp, drop),
    "waits for the other phase": Break(BarrierWaitOp, flip),
    "never tells": Break(Tcgen05CommitOp, drop),
    "does not meet": Break(SyncOp, drop),
    "takes the other sum": Break(SlotOp, moved(1, 1), 2),
}


class Subject:
    """The kernel at the end of the tile pipeline, its arguments and what it must give."""

    def __init__(self) -> None:
        keys = SIZES["BN"] * BLOCKS - 8
        self.arguments = [draw(64, 64), draw(keys, 64), draw(keys, 64, seed=1)]
        self.expected = expected_of(fading, self.arguments, SIZES["BN"])
        specs = [f"{name}:bf16[?,64;64,1]" for name in ("x", "up", "down", "y")]
        module = fading.source_module(specs, SIZES)
        self.job = lower_to(module, find_target("sm_100a"), "gpu_tile")

    def judge(self, job: Compilation) -> str:
        """A finding's kind, or how it ends without."""
        job.text = finish(job)
        device, y = EmulatorDevice("check"), poisoned(self.expected.shape, BF16)
        try:
            device.launch(device.load(compiled_kernel(job)), [*self.arguments, y], (1,))
        except FindingsError as error:
            return f"finding: {error.findings[0].kind}"
        except EmulatorError as error:
            return f"finding: {error.kind}"
        most = np.abs(self.expected).max()
        right = np.allclose(y.astype(np.float64), self.expected, rtol=0, atol=2e-2 * most)
        return "survived" if right else "wrong result"


def ops_of(job: Compilation, kind: Break) -> list[ir.Operation]:
    """What a break is done to: ops of the compute role. Not the commit that gives the slot of `x`
    back, which a single program does not fill again."""
    roles = [op for op in find_ops(job.module.operation, RoleOp) if op.opview.name == "compute"]
    found = [op for role in roles for op in find_ops(role, kind.ops)]
    if kind.ops is SlotOp:
        return [op for op in found if is_tensor_buffer(op.opview.src)]
    if kind.ops is Tcgen05CommitOp:
        return [op for op in found if any(isinstance(v, Tcgen05MmaOp) for v in op.block.operations)]
    return found


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject()


def test_the_unbroken_loop_passes(subject: Subject) -> None:
    assert subject.judge(copy_of(subject.job)) == "survived"


def test_all_are_found(subject: Subject, every_mutant: bool) -> None:
    every = [
        (name, number)
        for name, kind in BREAKS.items()
        for number in range(len(ops_of(subject.job, kind)))
    ]
    assert {name for name, _ in every} == set(BREAKS)
    ends = {}
    for name, number in share_of_each(every, 6, lambda one: one[0], everything=every_mutant):
        job = copy_of(subject.job)
        with job.module.context:
            BREAKS[name].mutate(ops_of(job, BREAKS[name])[number], BREAKS[name].slots)
        ends[f"{name} #{number}"] = subject.judge(job)
    assert [name for name, end in ends.items() if not end.startswith("finding")] == []
