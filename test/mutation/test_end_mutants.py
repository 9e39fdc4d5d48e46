"""CTAs of clusters end behind waits, without a meeting: each is broken, all breaks are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hopper_kernels import demanded
from mlir import ir
from pipelined_mutants import copy_of, finish
from role_mutants import BF16, drop, flip

from tilec.call.jit import Kernel
from tilec.compile.compiler import Compilation, compiled_kernel, lower_to
from tilec.dialects.gpu_tile import BarrierInitOp, BarrierWaitOp, ClusterSyncOp
from tilec.examples.attention import reference
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import find_ops
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError


@dataclass
class Subject:
    """A kernel at the end of the tile pipeline, what it reads, its programs, what it must give."""

    job: Compilation
    arrays: Sequence[np.ndarray]
    scalars: Sequence[float]
    programs: tuple[int, int, int]
    expected: np.ndarray

    def judge(self, job: Compilation) -> str:
        """The kinds of what the check mode finds, or whether the result is right."""
        job.text = finish(job)
        device, out = EmulatorDevice("check"), poisoned(self.expected.shape, BF16)
        arguments = [*self.arrays, out, *self.scalars]
        try:
            device.launch(device.load(compiled_kernel(job)), arguments, self.programs)
        except FindingsError as error:
            return ", ".join({finding.kind for finding in error.findings})
        most = np.abs(self.expected).max()
        right = np.allclose(out.astype(np.float64), self.expected, rtol=0, atol=2e-2 * most)
        return "right" if right else "wrong"


def _at_gpu_tile(
    kernel: Kernel, specs: list[str], sizes: dict[str, Any], target: str
) -> Compilation:
    return lower_to(kernel.source_module(specs, sizes), find_target(target), "gpu_tile")


def _asking() -> Subject:
    """A product whose clusters ask for programs; a slot of the answers' ring is used again."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((64 * 16, 96), (96, 32)))
    sizes = {"BM": 64, "BN": 32, "BK": 32, "STAGES": 2}
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    kernel = demanded.demanding(cluster=2, persistent="dynamic")
    expected = a.astype(np.float64) @ b.astype(np.float64)
    job = _at_gpu_tile(kernel, specs, sizes, "sm_120a")
    return Subject(job, (a, b), (), (16, 1, 1), expected)


def _attending() -> Subject:
    """Two blocks of queries that share keys and values, each in a ring of its own."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, 1, 100, 32)).astype(BF16) for _ in "qkv")
    sizes = {"D": 32, "BM": 64, "BN": 32, "CAUSAL": False, "STAGES": 2}
    specs = [*(f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in "qkvo"), "scale:f32"]
    job = _at_gpu_tile(attention.demanding(cluster=2), specs, sizes, "sm_90a")
    expected = reference(q, k, v, causal=False, scale=0.125)
    return Subject(job, (q, k, v), (0.125,), (2, 1, 1), expected)


@pytest.fixture(scope="module", params=[_asking, _attending], ids=["asking", "attending"])
def subject(request: pytest.FixtureRequest) -> Subject:
    """One with two rings whose slots CTAs give back to each other."""
    return request.param()


def last_waits(job: Compilation) -> list[ir.Operation]:
    """The waits at the ends of roles: in loops that carry nothing."""
    waits = find_ops(job.module.operation, BarrierWaitOp)
    last = [op for op in waits if op.parent.name == "scf.for" and not list(op.parent.results)]
    rings = {wait.opview.barrier: wait for wait in last}
    inits = [op.results[0] for op in find_ops(job.module.operation, BarrierInitOp)]
    return [rings[barrier] for barrier in inits if barrier in rings]


def test_roles_wait_for_every_ring(subject: Subject) -> None:
    """And the cluster meets at its beginning only."""
    assert len(last_waits(subject.job)) == 2
    assert len(find_ops(subject.job.module.operation, ClusterSyncOp)) == 1
    assert subject.judge(copy_of(subject.job)) == "right"


def _one_slot_less(wait: ir.Operation, slots: int) -> None:
    with ir.InsertionPoint(wait.parent), wait.location:
        wait.parent.operands[1] = i32_constant(slots - 1)


def _one_turn_less(wait: ir.Operation, slots: int) -> None:
    """The slots are awaited as if the last fill had not been."""
    position = wait.opview.slot.owner.operation
    with ir.InsertionPoint(position), position.location:
        position.operands[0] = binary("arith.subi", position.operands[0], i32_constant(1))


BREAKS: dict[str, Callable[[ir.Operation, int], None]] = {
    "does not wait": drop,
    "waits for the other phase": flip,
    "waits for one slot less": _one_slot_less,
    "waits for one turn less": _one_turn_less,
}


@pytest.mark.share(3)
@pytest.mark.parametrize("ring", [0, 1])
@pytest.mark.parametrize("name", BREAKS)
def test_all_are_found(subject: Subject, name: str, ring: int) -> None:
    """As arrivals in a CTA that has ended, or because the wait is for what never comes."""
    job = copy_of(subject.job)
    with job.module.context:
        wait = last_waits(job)[ring]
        BREAKS[name](wait, wait.opview.slot.owner.slots)
    assert subject.judge(job) in ("lost arrival", "deadlock")
