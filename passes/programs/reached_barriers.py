"""Barriers of a CTA that other CTAs of its cluster reach, and who waits for what comes there.

Whatever a CTA does to the shared memory of another, a barrier there counts: an arrival, the bytes
of a copy, the commit of products. So a CTA that has waited for all phases of its barriers has seen
all that will ever reach it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.gpu_tile import (
    BarrierArriveOp,
    BarrierWaitOp,
    NextProgramOp,
    RemoteArriveOp,
    RingPositionOp,
    Tcgen05CommitOp,
    Tcgen05MulticastCommitOp,
    TmaMulticastOp,
    TmaPairLoadOp,
    TmaPairMulticastOp,
)
from tilec.passes.rewriting.walk import find_ops, role_of

COMMITS = (Tcgen05CommitOp, Tcgen05MulticastCommitOp)
_GIVE_BACK = (BarrierArriveOp, RemoteArriveOp, *COMMITS)
REACHING = (
    NextProgramOp,
    RemoteArriveOp,
    Tcgen05MulticastCommitOp,
    TmaMulticastOp,
    TmaPairLoadOp,
    TmaPairMulticastOp,
)
"""In a cluster: ops that reach other CTAs, where the barrier of the same name counts it."""


def free_waits(role: ir.Operation) -> list[BarrierWaitOp]:
    """A role's waits for free slots: for the other parity than that of its use of the ring."""
    waits = [op.opview for op in find_ops(role, BarrierWaitOp)]
    return [
        wait
        for wait in waits
        if isinstance(wait.slot.owner, RingPositionOp)
        and wait.parity.owner.operation.name == "arith.xori"
    ]


def given_back_by(wait: BarrierWaitOp, *kinds: type) -> bool:
    """Whether ops of these classes in other roles arrive at what a role waits for."""
    role = role_of(wait.operation)
    users = [use.owner.operation for use in wait.barrier.uses]
    return any(isinstance(op.opview, kinds) and role_of(op) != role for op in users)


def unawaited(function: ir.Operation, waits: Sequence[BarrierWaitOp]) -> list[ir.Operation]:
    """The ops that reach other CTAs, there to come at any time, even when the CTA has ended.

    `waits`: those for free slots of the rings whose slots their roles also wait for at their ends,
    once more for each. All arrivals at these barriers have come by then. So has all that filled the
    slots, if whoever gives them back has waited for that.
    """
    awaited = [wait.barrier for wait in waits]
    return [
        op
        for op in find_ops(function, *REACHING)
        if op.opview.barrier not in awaited and not _is_read(op.opview.barrier, waits)
    ]


def _is_read(full: ir.Value, waits: Sequence[BarrierWaitOp]) -> bool:
    """Whether all that arrives at a barrier fills slots of rings that are awaited in the end, and
    whoever gives these back waits for that barrier."""
    users = [use.owner.operation for use in full.uses]
    readers = [role_of(op) for op in users if isinstance(op.opview, BarrierWaitOp)]
    fills = [op for op in users if not isinstance(op.opview, BarrierWaitOp)]
    return all(
        any(_is_use(fill, wait) and _all_give_back(wait.barrier, readers) for wait in waits)
        for fill in fills
    )


def _is_use(fill: ir.Operation, wait: BarrierWaitOp) -> bool:
    """Whether an op fills the slot that a wait of the same role is for."""
    here, there = fill.opview.slot.owner, wait.slot.owner
    is_position = isinstance(here, RingPositionOp)
    return is_position and (here.count, here.slots) == (there.count, there.slots)


def _all_give_back(empty: ir.Value, readers: Sequence[ir.Operation | None]) -> bool:
    """Whether the roles that give slots back are among some."""
    users = [use.owner.operation for use in empty.uses]
    return all(role_of(op) in readers for op in users if isinstance(op.opview, _GIVE_BACK))
