"""Rings of buffers that barriers guard: who fills a slot, and when its readers are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BarrierArriveOp,
    BarrierExpectOp,
    BarrierInitOp,
    BarrierWaitOp,
    BufferStoreOp,
    CpAsyncArriveOp,
    CpAsyncOp,
    RingPositionOp,
    Tcgen05MmaOp,
    TmaLoadOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.passes.analysis.async_readers import COMMITTED, awaited
from tilec.passes.copies.buffer_fills import products_of
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap, order_of
from tilec.passes.rewriting.walk import users_of

FILL_NAMES = {
    TmaLoadOp: "tensor copies",
    CpAsyncOp: "copies by cp.async",
    BufferStoreOp: "loads and stores",
}
_FILLS = tuple(FILL_NAMES)
_ARRIVALS = (BarrierExpectOp, CpAsyncArriveOp, BarrierArriveOp)


@dataclass
class Ring:
    """The copies that share a barrier, and what becomes of it.

    `arrivals`: by which the barrier knows of them. The ring's position stands in front of all.
    """

    barrier: BarrierInitOp
    position: RingPositionOp
    arrivals: list[BarrierExpectOp | CpAsyncArriveOp | BarrierArriveOp]
    copies: list[TmaLoadOp | CpAsyncOp | BufferStoreOp] = field(default_factory=list)
    wait: BarrierWaitOp = field(init=False)
    leader: Ring | None = None
    """The ring of an earlier loop whose buffers and barriers serve this one, too."""

    @property
    def loop(self) -> ir.Operation:
        """The loop whose every iteration fills one slot."""
        return self.position.operation.parent

    @property
    def signature(self) -> tuple[object, ...]:
        """Rings of equal signature can be one."""
        kinds = (type(arrival) for arrival in self.arrivals)
        return (
            *(str(alloc.results[0].type) for alloc in self.allocs),
            *kinds,
            arrivals_per(self),
        )

    @property
    def allocs(self) -> list[ir.Operation]:
        """Its buffers, one slot each so far."""
        return [copy.dst.owner.operation for copy in self.copies]


def find_rings(function: ir.Operation) -> list[Ring]:
    """The rings of a kernel: barriers with a position, arrivals, fills and a wait."""
    rings: dict[ir.Value, Ring] = {}
    waits: dict[ir.Value, BarrierWaitOp] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        if isinstance(view, _ARRIVALS):
            barrier, position = view.barrier.owner, view.slot.owner
            if view.barrier in rings:
                rings[view.barrier].arrivals.append(view)
            elif isinstance(barrier, BarrierInitOp) and isinstance(position, RingPositionOp):
                rings[view.barrier] = Ring(barrier, position, [view])
        elif isinstance(view, BarrierWaitOp) and view.barrier in rings:
            waits[view.barrier] = view
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    for barrier, wait in waits.items():
        rings[barrier].wait = wait
        rings[barrier].copies = _copies(rings[barrier])
    return [ring for ring in rings.values() if ring.copies]


def _copies(ring: Ring) -> list[TmaLoadOp | CpAsyncOp | BufferStoreOp]:
    """What fills buffers between a ring's position and its wait."""
    ops = list(ring.position.operation.block.operations)
    numbers = order_of(ops)
    first, last = (numbers.get(op, 0) for op in (ring.position, ring.wait))
    return [
        view
        for view in ops[first:last]
        if isinstance(view, _FILLS) and isinstance(view.dst.owner, AllocOp)
    ]


def last_product(ring: Ring) -> ir.Operation | None:
    """The op of the ring's own block that is or holds its last reader, where all are products in
    tensor memory; None if others read it, too."""
    products: list[ir.Operation] = []
    for user in (user for copy in ring.copies for user in users_of(copy.dst)):
        if isinstance(user.opview, Tcgen05MmaOp):
            products.append(user)
        elif not isinstance(user.opview, _FILLS):
            return None
    return _last_in(ring.position.operation.block, products) if products else None


def _last_in(block: ir.Block, ops: Sequence[ir.Operation]) -> ir.Operation:
    """The last op of a block that is or holds one of `ops`."""
    order = order_of(view.operation for view in block.operations)
    around = [next(op for op in (one, *enclosing_ops(one)) if op in order) for one in ops]
    return max(around, key=order.__getitem__)


def arrivals_per(ring: Ring) -> str:
    """Who gives slots of a ring back: rule 3 of specialize-warps."""
    readers = _known_readers(ring)
    return "warpgroup" if all(isinstance(r.opview, WgmmaWaitOp) for r in readers) else "warp"


def why_no_ring(ring: Ring) -> str | None:
    """What keeps a ring from being filled ahead of its readers, or None."""
    for copy in ring.copies:
        if sum(isinstance(use.owner.opview, _FILLS) for use in copy.dst.uses) > 1:
            return "a buffer is filled more than once"
        if any(reader is None for reader in _readers(copy.dst)):
            return "nothing waits for what reads a buffer"
    return None


def _readers(buffer: ir.Value) -> list[ir.Operation | None]:
    """The ops after which a buffer's readers are done with it.

    A load from shared memory is done when something has used what it loads, not when it was issued:
    on an H200 an arrival at an mbarrier right behind ldmatrix lets the copy engine overwrite rows
    before they are read (in 8192^3, tiles of 256 x 128, 400 times). So one that an operand of
    products is computed from counts as read when those are issued.
    """
    found: list[ir.Operation] = []
    for user in (each.opview for each in users_of(buffer)):
        if isinstance(user, WgmmaOp):
            found.append(_finished(user.result))
        elif isinstance(user, COMMITTED):
            found.append(awaited(user))
        elif not isinstance(user, _FILLS):
            found += products_of(user) or [user.operation]
    return found


def _finished(pending: ir.Value) -> ir.Operation | None:
    """The wait that ends the group which wrote a pending tile, None without."""
    users = [use.owner.opview for use in pending.uses]
    if len(users) != 1 or not isinstance(users[0], (WgmmaOp, WgmmaWaitOp)):
        return None
    return users[0].operation if isinstance(users[0], WgmmaWaitOp) else _finished(users[0].result)


def last_reader(ring: Ring) -> ir.Operation:
    """The op of the ring's own block behind which all its readers are done."""
    block = ring.position.operation.block
    return _last_in(block, [ring.wait.operation, *_known_readers(ring)])


def _known_readers(ring: Ring) -> list[ir.Operation]:
    """The readers of a ring for which `why_no_ring` has no reason: all are known."""
    readers = (reader for copy in ring.copies for reader in _readers(copy.dst))
    return [reader for reader in readers if reader is not None]


def share_rings(rings: list[Ring]) -> list[tuple[ir.Operation, int, ir.Value]]:
    """Marks rings of loops that follow each other and may go on with those of the first.

    Returns per such loop what `go_on` needs: the counts, and so the phases, run on.
    """
    followers: list[tuple[ir.Operation, int, ir.Value]] = []
    by_loop: OpMap[list[Ring]] = OpMap()
    for ring in rings:
        by_loop.setdefault(ring.loop, []).append(ring)
    seen: dict[tuple[object, ...], tuple[list[Ring], ir.Operation]] = {}
    for loop, own in by_loop.items():
        key = (loop.block, *(ring.signature for ring in own))
        leaders, previous = seen.get(key, (own, None))
        seen[key] = (leaders, loop)
        if previous is None or loop.name != "scf.for":
            continue
        count, before = _count_number(own), _count_number(by_loop[previous])
        if count is None or before is None:
            seen[key] = (own, loop)
            continue
        for ring, leader in zip(own, leaders, strict=True):
            ring.leader = leader
        followers.append((loop, count, previous.results[before]))
    return followers


def _count_number(rings: list[Ring]) -> int | None:
    """Which of a loop's carried values counts the uses of all its rings."""
    counts = {ring.position.count for ring in rings}
    if len(counts) != 1:
        return None
    (count,) = counts
    if not isinstance(count.owner, ir.Block) or count.owner.owner != rings[0].loop:
        return None
    return ir.BlockArgument(count).arg_number - 1


def go_on(loop: ir.Operation, number: int, reached: ir.Value) -> None:
    """Starts a loop's count where another's ended; what follows both goes on from there."""
    *_, last = loop.block.operations
    for place, value in enumerate(last.operation.operands):
        if value == reached:
            last.operation.operands[place] = loop.results[number]
    loop.operands[3 + number] = reached
