"""insert-barriers: a sync between accesses of different threads to the same shared memory.

Before:   "gpu_tile.buffer_store"(%x, %s)   %y = "gpu_tile.buffer_load"(%s)
After:    "gpu_tile.buffer_store"(%x, %s)  "gpu_tile.sync"() {barrier = 0, warps = 4, mode = "sync"}
          %y = "gpu_tile.buffer_load"(%s)

1. Walk in program order with the accesses since the last sync that some thread may still be making.
2. Before an access that conflicts with one of them (same bytes, at least one writes) place a sync;
   the set is empty after it.
3. A loop's entry also follows its end: repeat until the set at its entry no longer grows.
4. An asynchronous copy accesses the buffer at its issue and again, as a write other threads have
   not seen yet, at every wait that may end it.

Two boxes of one buffer that do not overlap, buffers that lie in other bytes, slots of a ring whose
distance is no multiple of its length, and accesses in which each thread touches the elements it
touches in the other do not conflict. A slot is known by its distance from a loop's counter; the end
of an iteration is one nearer than the start of the next.
Does not handle: conditions that differ between threads (tile programs branch on uniform scalars).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferGatherOp,
    BufferLoadOp,
    BufferStoreOp,
    CpAsyncOp,
    CpAsyncWaitOp,
    ReshapeViewOp,
    RingPositionOp,
    SlotOp,
    SyncOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.types import buffer_of, layout_of
from tilec.layout import Layout
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.divisibility import constant_of
from tilec.passes.lower_to_nvvm.cp_async import copy_layout
from tilec.passes.matrix_load import plan_matrix_load


@dataclass(frozen=True)
class _Access:
    """An access to bytes [start, end) of shared memory; `box`: its (offsets, sizes), where known.

    `slot`: (loop counter or None for 0, distance from it, slots), where it is one slot of a ring.
    `kind`: the type of the whole buffer or ring. Boxes and slots of two kinds do not compare, even
    where they lie in the same bytes. `threads`: which elements each thread touches, if no two touch
    the same.
    """

    writes: bool
    start: int
    end: int
    kind: ir.Type
    box: tuple[tuple[int, ...], tuple[int, ...]] | None
    slot: tuple[ir.Value | None, int, int] | None = None
    threads: Layout | None = None

    def conflicts(self, other: _Access) -> bool:
        """Whether the two need an order."""
        if not (self.writes or other.writes) or self.end <= other.start or other.end <= self.start:
            return False
        if (self.start, self.kind) != (other.start, other.kind):
            return True
        comparable = self.slot and other.slot and _is_same(self.slot[0], other.slot[0])
        if comparable and (self.slot[1] - other.slot[1]) % self.slot[2]:
            return False
        if self.threads is not None and (self.threads, self.box) == (other.threads, other.box):
            return False
        if self.box is None or other.box is None or len(self.box[0]) != len(other.box[0]):
            return True
        return all(
            a < b + size_b and b < a + size_a
            for a, size_a, b, size_b in zip(*self.box, *other.box, strict=True)
        )

    def next_iteration(self, counters: _Counters) -> _Access:
        """The same access seen from the next iteration of a loop."""
        if self.slot is None or self.slot[0] not in counters.steps:
            return self
        counter, distance, slots = self.slot
        return replace(self, slot=(counter, (distance - counters.steps[counter]) % slots, slots))

    def first_iteration(self, counters: _Counters) -> _Access:
        """An access before a loop seen from its first iteration, where a counter has a known
        value."""
        if self.slot is None or self.slot[0] is not None or not counters.starts:
            return self
        _, distance, slots = self.slot
        counter, start = next(iter(counters.starts.items()))
        return replace(self, slot=(counter, (distance - start) % slots, slots))


def _is_same(one: ir.Value | None, other: ir.Value | None) -> bool:
    # MLIR's values compare with values only.
    return one is other if one is None or other is None else one == other


@dataclass(frozen=True)
class _Counters:
    """Loop-carried ring counts that grow by a constant: the constant, and their first value if
    known."""

    steps: dict[ir.Value, int]
    starts: dict[ir.Value, int]


@dataclass(frozen=True)
class Pending:
    """`seen`: accesses since the last sync. `in_flight`: asynchronous writes not surely
    finished."""

    seen: frozenset[_Access] = frozenset()
    in_flight: frozenset[_Access] = frozenset()

    def __or__(self, other: Pending) -> Pending:
        return Pending(self.seen | other.seen, self.in_flight | other.in_flight)

    def map(self, move: Callable[[_Access], _Access]) -> Pending:
        """Every access moved."""
        return Pending(frozenset(map(move, self.seen)), frozenset(map(move, self.in_flight)))


@tile_pass(requires=Level.ALLOCATED, ensures=Level.ALLOCATED)
def insert_barriers(module: ir.Module, context: PassContext) -> None:
    """Orders every cross-thread dependence through shared memory."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _order(function.operation.regions[0].blocks[0], context)


def _order(body: ir.Block, context: PassContext) -> None:
    """Places syncs, then takes away those that later ones made redundant (a loop's second look)."""
    walk = _Walk(context)
    walk.block(body, Pending())
    for sync in reversed(list(walk.placed)):
        trial = _Walk(context, without=sync)
        trial.block(body, Pending())
        if trial.placed:
            for extra in trial.placed:
                extra.erase()
        else:
            sync.erase()


class _Walk:
    """One walk in program order; `placed`: the syncs it had to add. `without`: a sync it looks
    past."""

    def __init__(self, context: PassContext, without: ir.Operation | None = None) -> None:
        self._context = context
        self._warps = context.num_warps
        self._without = without
        self.placed: list[ir.Operation] = []

    def block(self, block: ir.Block, pending: Pending) -> Pending:
        """The accesses pending at the end of a block that starts with `pending`."""
        for view in list(block.operations):
            op = view.operation
            if isinstance(view, SyncOp):
                whole = view.mode == "sync" and view.warps == self._warps
                if whole and not (self._without is not None and op == self._without):
                    pending = Pending(in_flight=pending.in_flight)
            elif isinstance(view, CpAsyncWaitOp):
                left = pending.in_flight if view.pending else frozenset()
                pending = Pending(pending.seen | pending.in_flight, left)
            elif op.name in ("scf.for", "scf.while"):
                pending = self._loop(op, pending)
            elif op.name == "scf.if":
                pending = self._branch(op, pending)
            else:
                pending = self._visit(view, pending)
        return pending

    def _branch(self, op: ir.Operation, pending: Pending) -> Pending:
        """A sync one branch needs for what came before stands before both: it serves the code
        after, too."""
        inside = _accesses(op, self._context)
        if any(a.conflicts(earlier) for a in inside for earlier in pending.seen):
            pending = self._sync(op, pending)
        after = [self.block(b, pending) for r in op.regions for b in r.blocks]
        if not op.regions[1].blocks:  # without an else the accesses before it are still pending
            after.append(pending)
        joined = after[0]
        for other in after[1:]:
            joined |= other
        return joined

    def _loop(self, loop: ir.Operation, pending: Pending) -> Pending:
        counters = _counters(loop)
        pending = pending.map(lambda access: access.first_iteration(counters))
        while True:
            after = pending
            for region in loop.regions:
                for block in region.blocks:
                    after = self.block(block, after)
            entry = pending | after.map(lambda access: access.next_iteration(counters))
            if entry == pending:
                return pending | after
            pending = entry

    def _visit(self, view: object, pending: Pending) -> Pending:
        access = _access(view, self._context)
        if access is None:
            return pending
        # No sync ends a copy in flight: that is for the waits, which pipeline-loops places.
        if any(access.conflicts(earlier) for earlier in pending.seen):
            pending = self._sync(view.operation, pending)
        if isinstance(view, CpAsyncOp):
            return Pending(pending.seen, pending.in_flight | {access})
        return Pending(pending.seen | {access}, pending.in_flight)

    def _sync(self, before: ir.Operation, pending: Pending) -> Pending:
        with ir.InsertionPoint(before), before.location:
            self.placed.append(SyncOp.build(warps=self._warps).operation)
        return Pending(in_flight=pending.in_flight)


def _counters(loop: ir.Operation) -> _Counters:
    if loop.name != "scf.for":
        return _Counters({}, {})
    body = loop.regions[0].blocks[0]
    *_, last = body.operations
    steps, starts = {}, {}
    slots = zip(list(body.arguments)[1:], list(loop.operands)[3:], last.operands, strict=True)
    for argument, init, yielded in slots:
        base, step = _split_sum(yielded)
        if base == argument and step and _counts_a_ring(argument):
            steps[argument] = step
            start = constant_of(init)
            if start is not None:
                starts[argument] = start
    return _Counters(steps, starts)


def _counts_a_ring(value: ir.Value) -> bool:
    users = [use.owner.opview for use in value.uses]
    return any(
        isinstance(user, RingPositionOp)
        or (user.operation.name == "arith.addi" and _counts_a_ring(user.operation.results[0]))
        for user in users
    )


def _split_sum(value: ir.Value) -> tuple[ir.Value, int]:
    """A value as (base, constant added to it)."""
    total = 0
    while not isinstance(value.owner, ir.Block) and value.owner.name == "arith.addi":
        lhs, rhs = value.owner.operands
        step = constant_of(rhs)
        if step is None:
            break
        value, total = lhs, total + step
    return value, total


def _accesses(op: ir.Operation, context: PassContext) -> list[_Access]:
    found: list[_Access] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        access = _access(inner.opview, context)
        if access is not None:
            found.append(access)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _access(view: object, context: PassContext) -> _Access | None:
    if isinstance(view, CpAsyncOp):
        return _describe(view.dst, copy_layout(view, context), writes=True)
    if isinstance(view, BufferStoreOp):
        return _describe(view.dst, layout_of(view.value), writes=True)
    if isinstance(view, BufferLoadOp):
        layout = layout_of(view.result)
        buffer = buffer_of(view.src)
        # By ldmatrix a thread reads rows for others.
        if plan_matrix_load(layout, buffer.shape, buffer.layout, buffer.element_bytes) is not None:
            layout = None
        return _describe(view.src, layout, writes=False)
    if isinstance(view, BufferGatherOp):
        return _describe(view.src, None, writes=False)
    return None


def _describe(buffer: ir.Value, layout: Layout | None, *, writes: bool) -> _Access:
    sizes = buffer_of(buffer).shape
    if layout is not None and not _is_private(layout, sizes):
        layout = None
    offsets: tuple[int, ...] | None = (0,) * len(sizes)
    value, slot = buffer, None
    while not isinstance(value.owner, AllocOp):
        view = value.owner
        if isinstance(view, ReshapeViewOp):
            offsets = None
        elif isinstance(view, SlotOp):
            slot = _slot(view)
        elif isinstance(view, ViewOp):
            steps = [constant_of(v) for v in view.offsets]
            known = offsets is not None and None not in steps
            offsets = tuple(a + b for a, b in zip(offsets, steps, strict=True)) if known else None
        value = view.src
    start = value.owner.options["offset"]
    end = start + buffer_of(value).size_bytes
    if offsets is None:
        return _Access(writes, start, end, value.type, None, slot)
    return _Access(writes, start, end, value.type, (offsets, sizes), slot, layout)


def _is_private(layout: Layout, sizes: tuple[int, ...]) -> bool:
    """Whether each thread touches elements of its own: no copies, nothing clamped into the tile."""
    shared = any(not mode.stride and mode.size > 1 for mode in layout.threads)
    return not shared and not layout.has_phantoms(sizes)


def _slot(op: SlotOp) -> tuple[ir.Value | None, int, int] | None:
    slots = buffer_of(op.src).slots
    fixed = constant_of(op.index)
    if fixed is not None:
        return None, fixed, slots
    position = op.index.owner
    if not isinstance(position, RingPositionOp):
        return None
    counter, distance = _split_sum(position.count)
    return counter, distance % position.slots, position.slots
