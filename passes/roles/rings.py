"""What a ring brings together: who fills a slot, and when its readers are done."""

from __future__ import annotations

from dataclasses import field

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind, users
from tilec.dialects.effects import is_fill
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferStoreOp,
    CpAsyncCommitOp,
    MakeRingOp,
    RingAnnounceOp,
    RingPublishOp,
    RingSlotOp,
    RingWaitOp,
    Tcgen05MmaOp,
    ThreadCopy,
    TmaLoadOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.ring import COPIES
from tilec.passes.analysis.async_readers import awaited, ends_with_products
from tilec.passes.copies.buffer_fills import products_of
from tilec.passes.rewriting.loops import last_in, terminator
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.walk import find_ops, is_of, users_of
from tilec.records import dataclass

Copy = TmaLoadOp | ThreadCopy | BufferStoreOp


@dataclass
class Ring:
    """A ring as one loop uses it, one turn an iteration: the op that names the turn, in front of
    all, the copies that fill its slot, what publishes them, and the wait for it."""

    made: MakeRingOp
    turn: RingSlotOp
    arrivals: list[RingAnnounceOp | RingPublishOp]
    wait: RingWaitOp
    copies: list[Copy] = field(default_factory=list)
    leader: Ring | None = None
    """The ring of an earlier loop that serves this one, too."""

    @property
    def loop(self) -> ir.Operation:
        """The loop whose every iteration fills one slot."""
        return self.turn.operation.parent

    @property
    def block(self) -> ir.Block:
        """The body of that loop."""
        return self.turn.operation.block

    @property
    def signature(self) -> tuple[object, ...]:
        """Rings of equal signature can be one."""
        kinds = (getattr(arrival, "by", "announced") for arrival in self.arrivals)
        return (
            *(str(alloc.results[0].type) for alloc in self.allocs),
            *kinds,
            released_by(self),
        )

    @property
    def allocs(self) -> list[ir.Operation]:
        """Its buffers, one slot each so far."""
        return [copy.dst.owner.operation for copy in self.copies]


def find_rings(function: ir.Operation) -> list[Ring]:
    """The rings of a kernel that are filled and waited for in one block."""
    found = [_ring(op.opview) for op in find_ops(function, MakeRingOp)]
    rings = [ring for ring in found if ring is not None and ring.copies]
    first = order_of(find_ops(function, RingSlotOp))
    return sorted(rings, key=lambda ring: first[ring.turn])


def _ring(made: MakeRingOp) -> Ring | None:
    slots, waits = users(made.result, RingSlotOp), users(made.result, RingWaitOp)
    if len(slots) != 1 or len(waits) != 1:
        return None
    arrivals = of_kind(slots[0].operation.block.operations, RingAnnounceOp, RingPublishOp)
    ring = Ring(made, slots[0], [v for v in arrivals if v.ring == made.result], waits[0])
    ring.copies = _copies(ring)
    return ring


def _copies(ring: Ring) -> list[Copy]:
    """Lists the copies that fill a turn's slot between the op that names it and the wait for it:
    tensor copies, which name the ring, and what threads copy or store in front of its publication
    by copies or by warps. Whole turns of other rings may stand between.
    """
    ops = list(ring.block.operations)
    numbers = order_of(ops)
    first, last = (numbers.get(op, 0) for op in (ring.turn, ring.wait))
    found: list[Copy] = []
    open_: list[Copy] = []
    for view in ops[first:last]:
        if is_fill(view) and made_by(view.dst, AllocOp) is not None:
            if not isinstance(view, TmaLoadOp):
                open_.append(view)
            elif view.barrier == ring.made.result:
                found.append(view)
        elif isinstance(view, RingPublishOp):
            published = [copy for copy in open_ if _publishes(view, copy)]
            open_ = [copy for copy in open_ if not _publishes(view, copy)]
            found += published if view.ring == ring.made.result else []
        elif isinstance(view, CpAsyncCommitOp):  # its threads wait for these themselves
            open_ = [copy for copy in open_ if not isinstance(copy, ThreadCopy)]
    return sorted(found, key=numbers.__getitem__)


def _publishes(publish: RingPublishOp, copy: Copy) -> bool:
    """Whether a publication is of the kind that a thread's copy, or store, needs."""
    return publish.by == (COPIES if isinstance(copy, ThreadCopy) else "warp")


def last_product(ring: Ring) -> ir.Operation | None:
    """The op of the ring's own block that is or holds its last reader, where all are products in
    tensor memory; None if others read it, too."""
    products: list[ir.Operation] = []
    for user in (user for copy in ring.copies for user in users_of(copy.dst)):
        if is_of(user, Tcgen05MmaOp):
            products.append(user)
        elif not is_fill(user.opview):
            return None
    return last_in(ring.block, products) if products else None


def released_by(ring: Ring) -> str:
    """Names who releases slots of a ring, by rule 3 of specialize-warps."""
    readers = _known_readers(ring)
    return "warpgroup" if all(is_of(r, WgmmaWaitOp) for r in readers) else "warp"


def why_no_ring(ring: Ring) -> str | None:
    """Says what keeps a ring from being filled ahead of its readers; None if nothing does."""
    for copy in ring.copies:
        if sum(is_fill(use.owner.opview) for use in copy.dst.uses) > 1:
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
        elif ends_with_products(user):
            found.append(awaited(user))
        elif not is_fill(user):
            found += products_of(user) or [user.operation]
    return found


def _finished(pending: ir.Value) -> ir.Operation | None:
    """The wait that ends the group which wrote a pending tile, None without."""
    found = users(pending)
    if len(found) != 1 or not isinstance(found[0], (WgmmaOp, WgmmaWaitOp)):
        return None
    return found[0].operation if isinstance(found[0], WgmmaWaitOp) else _finished(found[0].result)


def last_reader(ring: Ring) -> ir.Operation:
    """The op of the ring's own block behind which all its readers are done."""
    block = ring.block
    return last_in(block, [ring.wait.operation, *_known_readers(ring)])


def _known_readers(ring: Ring) -> list[ir.Operation]:
    """The readers of a ring for which `why_no_ring` has no reason: all are known."""
    readers = (reader for copy in ring.copies for reader in _readers(copy.dst))
    return [reader for reader in readers if reader is not None]


def share_rings(rings: list[Ring], multiplied: OpSet) -> list[tuple[ir.Operation, int, ir.Value]]:
    """Marks rings of loops that follow each other, or of which one runs, and may go on with those
    of the first.

    Returns per such loop what `go_on` needs: the counts, and so the phases, run on. `multiplied`:
    loops whose slots a multiply role reads. A ring is read by one role: where another has turns in
    between, a wait for a slot's phase may find the phase before the last one, which looks the same.
    """
    followers: list[tuple[ir.Operation, int, ir.Value]] = []
    by_loop: OpMap[list[Ring]] = OpMap()
    for ring in rings:
        by_loop.setdefault(ring.loop, []).append(ring)
    seen: dict[tuple[object, ...], tuple[list[Ring], ir.Operation]] = {}
    for loop, own in by_loop.items():
        key = (_sequence(loop), loop in multiplied, *(ring.signature for ring in own))
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


def _sequence(loop: ir.Operation) -> ir.Block:
    """The block that tells loops apart which do not run one behind the other: their own, of a
    branch the first for both."""
    around = loop.block.owner
    return around.regions[0].blocks[0] if around.name == "scf.if" else loop.block


def _count_number(rings: list[Ring]) -> int | None:
    """The number of the one loop-carried value that counts the turns of all these rings, None
    without one."""
    counts = {ring.turn.count for ring in rings}
    if len(counts) != 1:
        return None
    (count,) = counts
    if count.owner != rings[0].loop.regions[0].blocks[0]:
        return None
    return ir.BlockArgument(count).arg_number - 1


def go_on(loop: ir.Operation, number: int, reached: ir.Value) -> None:
    """Starts a loop's count where another's ended; what follows both goes on from there. Of a loop
    in the other branch: where that one began."""
    last = terminator(loop.block)
    if reached.owner.operation.block != loop.block:
        passed = list(terminator(reached.owner.operation.block).operands)
        reached = last.operands[passed.index(reached)]
    for place, value in enumerate(last.operands):
        if value == reached:
            last.operands[place] = loop.results[number]
    loop.operands[3 + number] = reached
