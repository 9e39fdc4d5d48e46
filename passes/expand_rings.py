"""expand-rings: rings become mbarriers, and turns of them slots and parities.

Before:   %ring = "gpu_tile.make_ring"() {slots = 3, fills = 1, releases = 2,
                                          options = {offset = 1024}}
          ... %slot = "gpu_tile.ring_acquire"(%ring, %count)
              "gpu_tile.ring_announce"(%ring, %slot) {bytes = 16384}
              "gpu_tile.tma_load"(%map, %s, %ring, %slot, ...)
          ... %slot = "gpu_tile.ring_wait"(%ring, %count)
              "gpu_tile.ring_release"(%ring, %slot) {by = "warpgroup"}
After:    %full = "gpu_tile.barrier_init"() {slots = 3, count = 1, options = {offset = 1024}}
          %free = "gpu_tile.barrier_init"() {slots = 3, count = 2, options = {offset = 1048}}
          "gpu_tile.fence"() {kind = "barrier_init"}   "gpu_tile.sync"() ...
          ... %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3}
              "gpu_tile.barrier_wait"(%free, %slot, not %parity)
              "gpu_tile.barrier_expect"(%full, %slot) {bytes = 16384}
              "gpu_tile.tma_load"(%map, %s, %full, %slot, ...)
          ... %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3}
              "gpu_tile.barrier_wait"(%full, %slot, %parity)
              "gpu_tile.barrier_arrive"(%free, %slot) {per = "warpgroup"}

This is the one place that knows how a ring is kept: a phase of an mbarrier is a turn of its slot,
and a fresh barrier passes the odd parity, so slots are free at first (PTX ISA 9.0, "mbarrier").

1. One fence and one meeting of the CTA make the mbarriers of all rings known, behind the last ring;
   a sync that stands there anyway serves. In a cluster whose CTAs reach each other, all of them
   meet.
2. Copies by cp.async arrive by `cp_async_arrive`, products by `tcgen05_commit`, threads by
   `barrier_arrive`; with a mask, in other CTAs.
3. A kernel written by hand has its rings verified first (`checks/verify_rings.py`).
4. Turns of one count share a position, where one stands in front of the other. Where a turn's slots
   lie is computed in front of the wait for it.
Does not handle: rings made in a loop, branch or role, which is an error.
"""

from __future__ import annotations

from itertools import pairwise

from mlir import ir

from tilec.dialects.gpu_tile import (
    BarrierArriveOp,
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    ClusterSyncOp,
    CpAsyncArriveOp,
    FenceOp,
    MakeRingOp,
    RemoteArriveOp,
    RingAcquireOp,
    RingAnnounceOp,
    RingArrival,
    RingPositionOp,
    RingPublishOp,
    RingReleaseOp,
    RingSlotOp,
    RingTurn,
    RingWaitOp,
    SlotOp,
    SyncOp,
    Tcgen05CommitOp,
    Tcgen05MulticastCommitOp,
)
from tilec.dialects.gpu_tile.cluster import cluster_shape
from tilec.dialects.gpu_tile.mbarrier import BARRIER_BYTES
from tilec.dialects.gpu_tile.ring import COPIES, PRODUCTS
from tilec.dialects.gpu_tile.role import total_warps
from tilec.messages.diagnostics import InternalError
from tilec.passes.checks.verify_rings import verify_rings
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.demands.kernels import is_explicit
from tilec.passes.programs.reached_rings import reaching_ops
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import behind, enclosing_ops
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import negated
from tilec.passes.rewriting.walk import find_ops, is_of, kernels


@tile_pass(
    requires=Level.ALLOCATED,
    behind={"await-arrivals": "until then passes look for who fills and who empties a ring"},
)
def expand_rings(module: ir.Module, context: PassContext) -> None:
    """Makes mbarriers of all rings."""
    for function in kernels(module):
        rings = [op.opview for op in find_ops(function, MakeRingOp)]
        nested = [ring.operation for ring in rings if ring.operation.parent != function]
        if nested:
            raise error_at(nested[0], "a ring is made in the kernel's own body", _WHY)
        if is_explicit(function):
            verify_rings(module, context)
        if rings:
            _Expansion(function, rings).run(total_warps(function, context.num_warps))


_WHY = "all threads meet behind its making: no loop, branch or role may stand around it"


class _Expansion:
    """Rewrites one kernel. `_full`, `_free`: the mbarriers of each side of a ring, None of a side
    that nobody counts."""

    def __init__(self, function: ir.Operation, rings: list[MakeRingOp]) -> None:
        self._function, self._rings = function, rings
        self._full: dict[ir.Value, ir.Value | None] = {}
        self._free: dict[ir.Value, ir.Value | None] = {}
        self._positions: dict[tuple[ir.Block, ir.Value, int], RingPositionOp] = {}

    def run(self, warps: int) -> None:
        """Makes the barriers, then lets threads meet behind them, then replaces every op of a
        ring."""
        self._gather()
        self._meet(warps)
        for ring in self._rings:
            self._make_barriers(ring)
        for op in find_ops(self._function, RingTurn):
            self._expand_turn(op.opview)
        for op in find_ops(self._function, RingArrival):
            with ir.InsertionPoint(op), op.location:
                self._arrive(op.opview)
            op.erase()
        for ring in self._rings:
            full = self._full[ring.result]
            if full is not None:
                ring.result.replace_all_uses_with(full)
            ring.operation.erase()

    def _gather(self) -> None:
        """Moves all rings behind the first."""
        for before, ring in pairwise(self._rings):
            ring.operation.move_after(before.operation)

    def _make_barriers(self, ring: MakeRingOp) -> None:
        offset = ring.options["offset"]
        with ir.InsertionPoint(ring.operation), ring.operation.location:
            for side, count in ((self._full, ring.fills), (self._free, ring.releases)):
                side[ring.result] = None
                if count:
                    side[ring.result] = BarrierInitOp.build(
                        slots=ring.slots, count=count, options={"offset": offset}
                    )
                    offset += ring.slots * BARRIER_BYTES

    def _meet(self, warps: int) -> None:
        """Applies rule 1: behind the last ring, a fence and a sync, or a meeting of the cluster,
        make the barriers known."""
        if not any(ring.bytes for ring in self._rings):
            return
        last = self._rings[-1].operation
        place = behind(last)
        reached = bool(reaching_ops(self._function))
        meets = cluster_shape(self._function) != (1, 1, 1) and reached
        synced = None if meets else self._sync_behind(last)
        with ir.InsertionPoint(synced or place), last.location:
            FenceOp.build(kind="barrier_init")
            if meets:
                ClusterSyncOp.build(order="relaxed")
            elif synced is None:
                SyncOp.build(warps=warps)

    def _sync_behind(self, last: ir.Operation) -> ir.Operation | None:
        """A sync of the CTA behind the last ring, in front of all uses."""
        users = [use.owner.operation for ring in self._rings for use in ring.result.uses]
        uses = OpSet(op for user in users for op in (user, *enclosing_ops(user)))
        op = behind(last)
        while op not in uses and not op.regions:
            view = op.opview
            if isinstance(view, SyncOp) and view.barrier == 0 and view.mode == "sync":
                return op
            if op == list(op.block.operations)[-1].operation:
                return None
            op = behind(op)
        return None

    def _expand_turn(self, turn: RingSlotOp | RingAcquireOp | RingWaitOp) -> None:
        op = turn.operation
        with ir.InsertionPoint(op), op.location:
            position = self._position(turn.count, turn.slots, op.block)
        with ir.InsertionPoint(_behind_slots(op)), op.location:
            if isinstance(turn, RingAcquireOp):
                free = _counted(self._free, turn)
                BarrierWaitOp.build(free, position.slot, negated(position.parity))
            elif isinstance(turn, RingWaitOp):
                parity = negated(position.parity) if turn.previous else position.parity
                BarrierWaitOp.build(_counted(self._full, turn), position.slot, parity)
        turn.slot.replace_all_uses_with(position.slot)
        op.erase()

    def _position(self, count: ir.Value, slots: int, block: ir.Block) -> RingPositionOp:
        """The position of a count: one made before in this block or one around it, or a new one."""
        around = block
        while True:
            known = self._positions.get((around, count, slots))
            if known is not None:
                return known
            owner = around.owner
            if owner == self._function:
                break
            around = owner.operation.block
        slot, _ = RingPositionOp.build(count, slots=slots)
        self._positions[block, count, slots] = slot.owner
        return slot.owner

    def _arrive(self, op: RingAnnounceOp | RingPublishOp | RingReleaseOp) -> None:
        side = self._free if isinstance(op, RingReleaseOp) else self._full
        barrier = _counted(side, op)
        if isinstance(op, RingAnnounceOp):
            BarrierExpectOp.build(barrier, op.slot, bytes=op.bytes)
        elif op.by == COPIES:
            CpAsyncArriveOp.build(barrier, op.slot)
        elif op.by == PRODUCTS and op.mask is None:
            Tcgen05CommitOp.build(barrier, op.slot)
        elif op.by == PRODUCTS:
            Tcgen05MulticastCommitOp.build(barrier, op.slot, op.mask)
        elif op.mask is None:
            BarrierArriveOp.build(barrier, op.slot, per=op.by)
        else:
            RemoteArriveOp.build(barrier, op.slot, op.mask, per=op.by)


def _behind_slots(turn: ir.Operation) -> ir.Operation:
    """The first op behind a turn that does more than say where its slots lie."""
    op = behind(turn)
    while is_of(op, SlotOp):
        op = behind(op)
    return op


def _counted(side: dict[ir.Value, ir.Value | None], op: ir.OpView) -> ir.Value:
    """The mbarriers of one side of an op's ring."""
    barrier = side[op.ring]
    if barrier is None:
        raise InternalError(f"{show_location(op.operation)}: '{op.operation.name}': nobody counts")
    return barrier
