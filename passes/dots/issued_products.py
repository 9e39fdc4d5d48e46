"""A matrix instruction of warpgroups with what issues it, waits for it and gives its slots back."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import (
    constant_attribute,
    defining_op,
    made_by,
    of_kind,
    only_use,
    only_user,
)
from tilec.dialects.gpu_tile import (
    ConvertLayoutOp,
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    SlotOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.passes.analysis.issue_order import needed_to_issue, ring_turn
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.scalars import less
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import is_of, users_of
from tilec.records import dataclass

_ISSUING = (RingWaitOp, WgmmaFenceOp, WgmmaOp)
"""What may move with a product."""
ROTATED = "rotated"
"""What the report says of a loop whose last products run in the next iteration: no other line says
how its products run."""


@dataclass
class IssuedProduct:
    """A matrix instruction with its fence and wait in one block, what releases the slots of rings
    that it reads there, and those of their turns that begin there."""

    fence: WgmmaFenceOp
    multiply: WgmmaOp
    wait: WgmmaWaitOp
    releases: list[RingReleaseOp]
    turns: list[RingSlotOp | RingWaitOp]

    @property
    def starts_from_constant(self) -> bool:
        """Whether it adds to nothing that was computed."""
        return starts_from_constant(self.multiply)

    def released_at_once(self) -> list[RingReleaseOp]:
        """The releases of slots that nothing else reads. Others stay behind what does."""
        return [release for release in self.releases if not self._is_shared(release.slot)]

    def _is_shared(self, slot: ir.Value) -> bool:
        views = [use.owner.operation for use in slot.uses if is_of(use.owner.operation, SlotOp)]
        readers = [reader for view in views for reader in users_of(view.results[0])]
        return any(reader != self.multiply.operation for reader in readers)

    def packing(self) -> list[ir.Operation]:
        """The ops beside it, in order, that only narrow what it takes from registers: they write
        the registers that it reads until it is done."""
        return packing(self.multiply.lhs, self.multiply.operation.block)

    def needed_to_issue(
        self, body: ir.Block, counters: dict[int, int], given: Sequence[ir.Value]
    ) -> list[ir.Operation]:
        """The ops of the body up to its issue that it needs beside the tiles `given`, in order."""
        tiles = [value for value in given if not is_buffer(value)]
        return needed_to_issue([self.multiply.operation], body, counters, tiles, _ISSUING)


def packing(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """The ops of a block, in order, that only narrow what is for one op alone."""
    found: list[ir.Operation] = []
    while only_use(value) is not None:
        op = defining_op(value, "arith.truncf", ConvertLayoutOp.OPERATION_NAME)
        if op is None or op.block != block:
            break
        found.insert(0, op)
        (value,) = op.operands
    return found


def narrowing(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """The ops of a block, in order, by which threads write a narrowed tile, whoever reads it, too;
    none where it is not narrowed there."""
    found: list[ir.Operation] = []
    while (op := defining_op(value, "arith.truncf", ConvertLayoutOp.OPERATION_NAME)) is not None:
        if op.block != block:
            break
        found.insert(0, op)
        if op.name == "arith.truncf":
            return found
        (value,) = op.operands
    return []


def products_of(body: ir.Block) -> list[WgmmaOp]:
    """The matrix instructions of a loop's body, not those inside its ops."""
    return of_kind(body.operations, WgmmaOp)


def starts_from_constant(multiply: WgmmaOp) -> bool:
    """Whether a matrix instruction adds to nothing that was computed."""
    fence = made_by(multiply.acc, WgmmaFenceOp)
    return fence is not None and constant_attribute(fence.acc) is not None


def find_product(multiply: WgmmaOp, body: ir.Block) -> IssuedProduct | None:
    """What belongs to a matrix instruction of a block; None where it is not issued and waited
    for in one place."""
    fence, wait = made_by(multiply.acc, WgmmaFenceOp), only_user(multiply.result, WgmmaWaitOp)
    if fence is None or wait is None or wait.pending:
        return None
    if any(op.operation.block != body for op in (fence, wait)):
        return None
    found = [ring_turn(operand) for operand in (multiply.lhs, multiply.rhs)]
    turns = [turn for turn in found if turn is not None]
    slots = [turn.slot for turn in turns]
    releases = [one for one in of_kind(body.operations, RingReleaseOp) if one.slot in slots]
    turns = [turn for turn in turns if turn.operation.block == body]
    return IssuedProduct(fence, multiply, wait, releases, turns)


class LoopRewrite:
    """Puts a branch for at least one iteration in the place of a loop (scf.for), with what
    `_iterations` writes there. The report says `CHOSEN` of it, and `WHY`."""

    CHOSEN = ROTATED
    WHY = ""

    def __init__(self, loop: ir.Operation) -> None:
        self._loop, self._body = loop, loop.regions[0].blocks[0]
        self._lower, self._upper, self._step, *self._inits = loop.operands
        self._arguments = list(self._body.arguments)
        self._yielded = list(terminator(self._body).operands)

    def run(self) -> None:
        """Rewrites the loop."""
        with ir.InsertionPoint(self._loop), self._loop.location:
            made = either(less(self._lower, self._upper), self._iterations, lambda: self._inits)
        replace_op(self._loop, *made)

    def _iterations(self) -> list[ir.Value]:
        """Writes what the branch does; gives the loop's results."""
        raise NotImplementedError
