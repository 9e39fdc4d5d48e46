"""Rings of a CTA that other CTAs of its cluster reach, and who waits for what comes there.

Whatever a CTA does to the shared memory of another, a ring there counts: a release, the bytes of a
copy, the end of products. So a CTA that has waited for all turns of its rings has seen all that
will ever reach it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import made_by, users
from tilec.dialects.gpu_tile import (
    RingAcquireOp,
    RingHandover,
    RingReleaseOp,
    RingWaitOp,
)
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.dialects.op import TileOp
from tilec.passes.rewriting.walk import find_ops, is_of, role_of


def reaching_ops(function: ir.Operation) -> list[ir.Operation]:
    """The ops that do something to other CTAs of a cluster, in program order."""
    return [op for op in find_ops(function, TileOp) if op.opview.reaches_others()]


def released_late(turn: RingAcquireOp, *, by_threads: bool) -> bool:
    """Whether other roles release the slots of an acquired ring when a CTA would have ended: by the
    end of products, an arrival that no thread makes, or, `by_threads`, from other CTAs."""
    role = role_of(turn.operation)
    releases = [user for user in users(turn.ring, RingReleaseOp) if role_of(user.operation) != role]
    return any(r.by == PRODUCTS or (by_threads and r.mask is not None) for r in releases)


def unawaited(function: ir.Operation, acquired: Sequence[RingAcquireOp]) -> list[ir.Operation]:
    """The ops that reach other CTAs, there to come at any time, even when the CTA has ended.

    `acquired`: turns of the rings all of whose slots their roles acquire once more at their ends.
    All releases of these have come by then. So has all that filled the slots, if whoever releases
    them has waited for that.
    """
    awaited = [turn.ring for turn in acquired]
    late = []
    for op in reaching_ops(function):
        ring, turn = _ring_of(op.opview), made_by(op.opview.slot, RingAcquireOp)
        released = is_of(op, RingReleaseOp)
        filled = turn is not None and turn.ring == ring and _is_read(ring)
        if ring not in awaited or not (released or filled):
            late.append(op)
    return late


def _ring_of(view: ir.OpView) -> ir.Value:
    return view.ring if isinstance(view, RingHandover) else view.barrier


def _is_read(ring: ir.Value) -> bool:
    """Whether all roles that release slots of a ring have waited for them."""
    readers = [role_of(wait.operation) for wait in users(ring, RingWaitOp)]
    return all(role_of(op.operation) in readers for op in users(ring, RingReleaseOp))
