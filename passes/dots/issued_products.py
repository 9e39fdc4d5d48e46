"""A matrix instruction of warpgroups with what issues it, waits for it and gives its slots back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import (
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.passes.analysis.issue_order import needed_to_issue, ring_turn

_ISSUING = (RingWaitOp, WgmmaFenceOp, WgmmaOp)
"""What may move with a product."""


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

    def needed_to_issue(
        self, body: ir.Block, counters: dict[int, int], given: Sequence[ir.Value]
    ) -> list[ir.Operation] | str:
        """The ops of the body up to its issue that it needs beside the tiles `given`, in order; or
        why it cannot be issued elsewhere."""
        tiles = [value for value in given if not is_buffer(value)]
        return needed_to_issue([self.multiply.operation], body, counters, tiles, _ISSUING)


def products_of(body: ir.Block) -> list[WgmmaOp]:
    """The matrix instructions of a loop's body, not those inside its ops."""
    return of_kind(body.operations, WgmmaOp)


def starts_from_constant(multiply: WgmmaOp) -> bool:
    """Whether a matrix instruction adds to nothing that was computed."""
    fence = multiply.acc.owner
    if not isinstance(fence, WgmmaFenceOp):
        return False
    owner = fence.acc.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.constant"


def find_product(multiply: WgmmaOp, body: ir.Block) -> IssuedProduct | None:
    """What belongs to a matrix instruction of a block; None where it is not issued and waited
    for in one place."""
    fence, uses = multiply.acc.owner, list(multiply.result.uses)
    wait = uses[0].owner.opview if len(uses) == 1 else None
    if not isinstance(fence, WgmmaFenceOp) or not isinstance(wait, WgmmaWaitOp) or wait.pending:
        return None
    if any(op.operation.block != body for op in (fence, wait)):
        return None
    found = [ring_turn(operand) for operand in (multiply.lhs, multiply.rhs)]
    turns = [turn for turn in found if turn is not None]
    slots = [turn.slot for turn in turns]
    releases = [one for one in of_kind(body.operations, RingReleaseOp) if one.slot in slots]
    turns = [turn for turn in turns if turn.operation.block == body]
    return IssuedProduct(fence, multiply, wait, releases, turns)
