"""A warp-specialised product with its ring of barriers broken in one place at a time.

The ring has more slots than two and turns several times over two programs; with two slots the slot
before is the slot after, and in a ring that never comes round nothing waits for what is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from hopper_kernels import demanded
from mlir import ir
from pipelined_mutants import Verdict, copy_of, finish

from tilec.call.jit import Kernel
from tilec.compile.compiler import Compilation, compiled_kernel, lower_to
from tilec.dialects.gpu_tile import (
    BarrierArriveOp,
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    SlotOp,
    TmaLoadOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice, FindingsError

BF16 = ml_dtypes.bfloat16
SIZES = {"BM": 64, "BN": 64, "BK": 32}
TURNS = 3
"""How often the ring goes round in a program: K is as many tiles as that, less one."""


def _i32(value: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    attributes = {"value": ir.IntegerAttr.get(i32, value)}
    return ir.Operation.create("arith.constant", results=[i32], attributes=attributes).results[0]


def moved(operand: int, by: int) -> Callable[[ir.Operation, int], None]:
    """The slot in an operand becomes the one `by` further."""

    def mutate(op: ir.Operation, slots: int) -> None:
        with ir.InsertionPoint(op), op.location:
            slot = op.operands[operand]
            later = ir.Operation.create(
                "arith.addi", results=[slot.type], operands=[slot, _i32(by % slots)]
            )
            transposed = ir.Operation.create(
                "arith.remui", results=[slot.type], operands=[later.results[0], _i32(slots)]
            )
            op.operands[operand] = transposed.results[0]

    return mutate


def drop(op: ir.Operation, slots: int) -> None:
    op.erase()


def twice(op: ir.Operation, slots: int) -> None:
    with ir.InsertionPoint(op), op.location:
        op.clone()


def flip(op: ir.Operation, slots: int) -> None:
    """The wait is for the other phase."""
    with ir.InsertionPoint(op), op.location:
        bit = ir.IntegerType.get_signless(1)
        attributes = {"value": ir.IntegerAttr.get(bit, 1)}
        one = ir.Operation.create("arith.constant", results=[bit], attributes=attributes)
        other = ir.Operation.create(
            "arith.xori", results=[bit], operands=[op.operands[2], one.results[0]]
        )
        op.operands[2] = other.results[0]


def changed(name: str, by: int) -> Callable[[ir.Operation, int], None]:
    """An integer attribute becomes another."""

    def mutate(op: ir.Operation, slots: int) -> None:
        old = op.attributes[name]
        op.attributes[name] = ir.IntegerAttr.get(old.type, old.value + by)

    return mutate


def _before_the_wait(op: ir.Operation, slots: int) -> None:
    """The arrival, with what decides on it, in front of the wait for the products."""
    branch = op.parent
    views = [view.operation for view in branch.block.operations]
    wait = next(v for v in views if isinstance(v.opview, WgmmaWaitOp))
    for moved in (branch.operands[0].owner, branch):
        moved.move_before(wait)


@dataclass(frozen=True)
class Break:
    """A kind of op, and what is done to each of them in turn."""

    name: str
    ops: type
    mutate: Callable[[ir.Operation, int], None]


BREAKS = (
    Break("gives back the slot after", BarrierArriveOp, moved(1, 1)),
    Break("gives back the slot before", BarrierArriveOp, moved(1, -1)),
    Break("gives back the slot two on", BarrierArriveOp, moved(1, 2)),
    Break("never gives back", BarrierArriveOp, drop),
    Break("gives back twice", BarrierArriveOp, twice),
    Break("gives back before the products are done", BarrierArriveOp, _before_the_wait),
    Break("one group of products too many in flight", WgmmaWaitOp, changed("pending", 1)),
    Break("does not wait", BarrierWaitOp, drop),
    Break("waits for the other phase", BarrierWaitOp, flip),
    Break("waits for another slot", BarrierWaitOp, moved(1, 1)),
    Break("expects 16 bytes more", BarrierExpectOp, changed("bytes", 16)),
    Break("expects 16 bytes less", BarrierExpectOp, changed("bytes", -16)),
    Break("expects nothing", BarrierExpectOp, drop),
    Break("expects at another slot", BarrierExpectOp, moved(1, 1)),
    Break("signals another slot", TmaLoadOp, moved(3, 1)),
    Break("copies nothing", TmaLoadOp, drop),
    Break("takes another slot's bytes", SlotOp, moved(1, 1)),
    Break("counts one arrival more", BarrierInitOp, changed("count", 1)),
)


@dataclass(frozen=True)
class RoleMutant:
    """Which op of its kind is broken, and how."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} #{self.number}"


class RoleProduct:
    """The product with a ring of so many slots, compiled to the end of the tile pipeline.

    Four programs on three CTAs: one CTA's ring goes on over a second program.
    """

    kernel: Kernel = demanded
    programs = 4

    def __init__(self, slots: int) -> None:
        self.slots = slots
        depth = 32 * (TURNS * slots - 1)
        rng = np.random.default_rng(slots)
        self.a = rng.standard_normal((64 * self.programs, depth)).astype(BF16)
        self.b = rng.standard_normal((depth, 64)).astype(BF16)
        self.expected = self.a.astype(np.float64) @ self.b.astype(np.float64)
        eights = "bf16[?,?:8;?:8,1]"
        module = self.kernel.source_module(
            [f"{name}:{eights}" for name in "abc"],
            {**SIZES, "STAGES": slots, "WARP_SPECIALIZE": True},
        )
        self.job = lower_to(module, find_target("sm_90a"), "gpu_tile")

    def copy(self) -> Compilation:
        """The compilation with a module of its own."""
        return copy_of(self.job)

    def judge(self, job: Compilation, mode: str = "check") -> tuple[str, str]:
        """Runs a compilation in a mode: the outcome, and the first finding's kind."""
        job.text = finish(job)
        device = EmulatorDevice(mode)
        c = poisoned(self.expected.shape, BF16)
        try:
            device.launch(
                device.load(compiled_kernel(job)), [self.a, self.b, c], (self.programs, 1)
            )
        except FindingsError as error:
            return "finding", error.findings[0].kind
        except EmulatorError as error:
            return "finding", error.kind
        most = np.abs(self.expected).max()
        wrong = not np.allclose(c.astype(np.float64), self.expected, rtol=0, atol=1e-2 * most)
        return ("wrong result" if wrong else "survived"), ""

    def mutants(self) -> Iterator[Verdict]:
        """Every mutant, judged."""
        for kind in BREAKS:
            for number in range(len(_ops(self.job.module, kind.ops, self.slots))):
                job = self.copy()
                with job.module.context:
                    kind.mutate(_ops(job.module, kind.ops, self.slots)[number], self.slots)
                yield Verdict(RoleMutant(kind.name, number), *self.judge(job))


def _ops(module: ir.Module, wanted: type, slots: int) -> list[ir.Operation]:
    """The ops of a kind in program order; of slots, those of the rings."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, wanted) and not (
            isinstance(view, SlotOp) and buffer_of(view.src).slots != slots
        ):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def main() -> None:
    """Prints every verdict."""
    for verdict in RoleProduct(3).mutants():
        print(f"{verdict.mutation}: {verdict.outcome} {verdict.detail}")


if __name__ == "__main__":
    main()
