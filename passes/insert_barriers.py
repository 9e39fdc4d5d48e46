"""insert-barriers: a sync between accesses of different threads to the same shared memory, or to
an array that the kernel writes.

Before:   "gpu_tile.buffer_store"(%x, %s)   %y = "gpu_tile.buffer_load"(%s)
After:    "gpu_tile.buffer_store"(%x, %s)  "gpu_tile.sync"() {barrier = 0, warps = 4, mode = "sync"}
          %y = "gpu_tile.buffer_load"(%s)

1. Walk in program order with the accesses since the last sync that some thread may still be making
   (`analysis/shared_accesses.py` says which two conflict).
2. Before an access that conflicts with one of them (same bytes, at least one writes) place a sync;
   the set is empty after it.
3. A loop's entry also follows its end: repeat until the set at its entry no longer grows. Where
   fewer syncs are left in it behind one in front of it, there is one. What a branch in front of it
   issues for its first iteration is not pending behind no iteration.
4. An asynchronous copy accesses the buffer at its issue and again, as a write other threads have
   not seen yet, at every wait that may end it. What tensor cores and tensor stores read is read
   until the wait that surely ends it; products in tensor memory end at a ring that every
   thread waits for. A tensor load needs the buffer free at its issue; its readers wait for its
   ring.
5. A role has a named barrier of its own, 1 + its number, of its own warps; among neighbouring roles
   rings order. What stands before them is ordered by a sync in front of the first. One thread
   alone needs none.
6. Atomics that acquire or release, and fences, stand between syncs where other threads access
   global memory before or after: one thread's order serves all that met it (PTX ISA 9.0, "Causality
   order"), as the program is one thread to its author.
7. So do accesses to one array, where a thread may touch what another wrote (`array_accesses`).

Does not handle: conditions that differ between threads (tile programs branch on uniform scalars),
buffers written before the wait for their asynchronous readers (a bug of the pass before).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import Enum, auto
from typing import NamedTuple

from mlir import ir

from tilec.dialects.effects import ends, until
from tilec.dialects.gpu_tile import ClusterSyncOp, RoleOp, SyncOp, TmaCommitOp
from tilec.dialects.gpu_tile.role import roles_beside, total_warps
from tilec.dialects.traits import Until
from tilec.passes.analysis.array_accesses import ArrayAccess
from tilec.passes.analysis.async_readers import reads_for_products
from tilec.passes.analysis.loop_guards import is_taken_where_it_runs
from tilec.passes.analysis.pending_accesses import Group, Pending, seen, waited
from tilec.passes.analysis.role_threads import runs_in_one_thread
from tilec.passes.analysis.shared_accesses import (
    Access,
    Counters,
    accesses_inside,
    accesses_of,
    ring_counters,
)
from tilec.passes.analysis.signals import ends_products, waits_at
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.loops import behind, enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.walk import blocks_in, find_ops
from tilec.records import dataclass

LOOPS = ("scf.for", "scf.while")


@kernel_pass(requires=Level.ALLOCATED)
def insert_barriers(function: ir.Operation, context: PassContext) -> None:
    """Orders every cross-thread dependence through shared memory.

    Places syncs, then takes away those that later ones made redundant (a loop's second look).
    """
    body = function.regions[0].blocks[0]
    roles = order_of(find_ops(function, RoleOp))
    kernel = _Kernel(total_warps(function, context.num_warps), roles, context)
    walk = _Walk(kernel)
    walk.block(body, Pending())
    for sync in filter(_meets_itself, reversed(list(walk.placed))):
        try:
            _Walk(kernel, without=sync).block(body, Pending())
        except _Missing:
            continue
        kernel.erase(sync)


class _Missing(Exception):
    """Some access needs the sync that a walk takes for absent, or another in its place."""


def _meets_itself(sync: ir.Operation) -> bool:
    """Whether a sync stands in a loop, or in front of an op that may hold one: syncs that came
    later may stand behind it and in front of what it is for."""
    inside = any(op.name in LOOPS for op in enclosing_ops(sync))
    return inside or len(behind(sync).regions) > 0


class _Kind(Enum):
    """What an op is to a walk."""

    CLUSTER = auto()
    """A meeting of all CTAs of a cluster."""
    SYNC = auto()
    GROUPS = auto()
    """A commit of a group of asynchronous accesses, or a wait for groups."""
    PRODUCTS = auto()
    """A wait at a place where the end of products arrives."""
    ROLE = auto()
    LOOP = auto()
    BRANCH = auto()
    OTHER = auto()


class _Point(NamedTuple):
    """An op that a walk looks at. `accesses`: those of the op itself; a set keeps the hashes of
    what it holds."""

    view: ir.OpView
    kind: _Kind
    accesses: Group = frozenset()


class _Ahead(NamedTuple):
    """What a branch issues for tensor cores that read nothing else of it before: the accesses by
    which they read, where nothing was issued since."""

    branch: ir.Operation
    reads: Group


@dataclass
class _Kernel:
    """What all walks over a kernel have in common: its warps, its roles' numbers, and the few ops
    of a block that a walk has to look at."""

    warps: int
    roles: OpMap[int]
    context: PassContext
    _inside: OpMap[Group] = field(default_factory=OpMap)
    _points: dict[ir.Block, list[_Point]] = field(default_factory=dict)
    _counters: OpMap[Counters] = field(default_factory=OpMap)

    def inside(self, role: ir.Operation) -> Group:
        """The accesses of all ops of a role."""
        found = self._inside.get(role)
        if found is None:
            found = self._inside[role] = frozenset(accesses_inside(role, self.context))
        return found

    def counters(self, loop: ir.Operation) -> Counters:
        """The counts of rings that a loop carries, which no sync changes."""
        found = self._counters.get(loop)
        if found is None:
            found = self._counters[loop] = ring_counters(loop)
        return found

    def points(self, block: ir.Block) -> list[_Point]:
        """The ops of a block that access memory, order accesses or hold such ops."""
        found = self._points.get(block)
        if found is None:
            met = map(self._point, block.operations)
            found = self._points[block] = [point for point in met if point is not None]
        return found

    def _point(self, view: ir.OpView) -> _Point | None:
        kind = _kind_of(view)
        if kind in (_Kind.ROLE, _Kind.LOOP, _Kind.BRANCH):
            return _Point(view, kind)
        accesses = frozenset(accesses_of(view, self.context))
        orders = kind is not _Kind.OTHER or waits_at(view) is not None
        return _Point(view, kind, accesses) if orders or accesses else None

    def sync(self, before: ir.Operation, barrier: int, warps: int) -> ir.Operation:
        """Places a sync in front of an op that walks look at."""
        with ir.InsertionPoint(before), before.location:
            sync = SyncOp.build(barrier=barrier, warps=warps)
        points = self.points(before.block)
        place = next(n for n, point in enumerate(points) if point.view.operation == before)
        points.insert(place, _Point(sync, _Kind.SYNC))
        return sync.operation

    def erase(self, sync: ir.Operation) -> None:
        """Takes a sync away."""
        points = self.points(sync.block)
        points[:] = [point for point in points if point.view.operation != sync]
        sync.erase()


_KINDS = {
    ClusterSyncOp.OPERATION_NAME: _Kind.CLUSTER,
    SyncOp.OPERATION_NAME: _Kind.SYNC,
    TmaCommitOp.OPERATION_NAME: _Kind.GROUPS,
    RoleOp.OPERATION_NAME: _Kind.ROLE,
    **dict.fromkeys(LOOPS, _Kind.LOOP),
    "scf.if": _Kind.BRANCH,
}
"""The kinds that an op's name says."""


def _kind_of(view: ir.OpView) -> _Kind:
    found = _KINDS.get(view.operation.name)
    if found is not None:
        return found
    if ends(view) is not None:
        return _Kind.GROUPS
    return _Kind.PRODUCTS if ends_products(view) else _Kind.OTHER


class _Walk:
    """One walk in program order, which places syncs. `placed`: those that it had to add. `without`:
    a sync that it takes for absent, and then it places none: the first that it would ends it
    (`_Missing`)."""

    def __init__(self, kernel: _Kernel, without: ir.Operation | None = None) -> None:
        self._kernel = kernel
        self._barrier = 0
        self._warps = kernel.warps
        self._without = without
        self._beside = OpSet()
        self._issued = 0
        self.placed: list[ir.Operation] = []

    def block(self, block: ir.Block, pending: Pending) -> Pending:
        """The accesses pending at the end of a block that starts with `pending`."""
        ahead = None
        for point in list(self._kernel.points(block)):
            before, issued = pending, self._issued
            pending = self._step(point, pending, ahead)
            if self._issued > issued:
                only = pending.multiplied - before.multiplied
                ahead = _Ahead(point.view.operation, only) if point.kind is _Kind.BRANCH else None
        return pending

    def _step(self, point: _Point, pending: Pending, ahead: _Ahead | None) -> Pending:
        """The accesses pending behind an op. `ahead`: the last that issued products."""
        view, kind, _ = point
        if kind is _Kind.CLUSTER:
            return pending.synced()
        if kind is _Kind.SYNC:
            whole = view.mode == "sync" and view.warps == self._warps
            absent = self._without is not None and view.operation == self._without
            return pending.synced() if whole and not absent else pending
        if kind is _Kind.GROUPS:
            return waited(view, pending)
        if kind is _Kind.PRODUCTS:
            # All threads wait for what one issued: nothing is left to tell anybody.
            return pending._replace(multiplying=())
        if kind is _Kind.ROLE:
            return self._role(view, pending)
        if kind is _Kind.LOOP:
            return self._loop(view.operation, pending, ahead)
        if kind is _Kind.BRANCH:
            return self._branch(view.operation, pending)
        return self._visit(point, pending)

    def _role(self, role: RoleOp, pending: Pending) -> Pending:
        if role.operation not in self._beside:
            together = roles_beside(role.operation.block.operations)
            group = next(each for each in together if role.operation in each)
            self._beside.update(group)
            inside = [a for op in group for a in self._kernel.inside(op)]
            if _conflict(inside, pending.seen):
                pending = self._sync(role.operation, pending)
        if runs_in_one_thread(role):
            return pending.saw(self._kernel.inside(role.operation))
        outside = self._barrier, self._warps
        self._barrier, self._warps = 1 + self._kernel.roles[role.operation], role.warps
        after = self.block(role.body, Pending())
        self._barrier, self._warps = outside
        # The other warps have not met this role's syncs.
        return (pending | after).saw(self._kernel.inside(role.operation))

    def _branch(self, op: ir.Operation, pending: Pending) -> Pending:
        """A sync that both branches surely need for what came before stands before them: it serves
        the code after, too. Any other stands where it is needed, and who goes past it is free."""
        if self._surely_conflicts(blocks_in(op), pending):
            pending = self._sync(op, pending)
        after = [self.block(block, pending) for block in blocks_in(op)]
        if not op.regions[1].blocks:  # without an else the accesses before it are still pending
            after.append(pending)
        joined = after[0]
        for other in after[1:]:
            joined |= other
        return joined

    def _surely_conflicts(self, blocks: list[ir.Block], pending: Pending) -> bool:
        """Whether each of the two blocks of a branch meets an access that needs an order."""

        def meets(point: _Point) -> bool:
            if point.kind is _Kind.BRANCH:
                return self._surely_conflicts(blocks_in(point.view.operation), pending)
            is_simple = len(point.view.operation.regions) == 0
            return is_simple and _conflict(point.accesses, pending.seen)

        return len(blocks) == 2 and all(any(map(meets, self._kernel.points(b))) for b in blocks)

    def _loop(self, loop: ir.Operation, pending: Pending, ahead: _Ahead | None) -> Pending:
        """A sync in front of the loop where that leaves fewer of them inside."""
        before = len(self.placed)
        after = self._iterations(loop, pending, ahead)
        inside = len(self.placed) - before
        if not inside or not pending.seen:
            return after
        self._take_back(before)
        after = self._iterations(loop, self._sync(loop, pending), ahead)
        if len(self.placed) - before <= inside:
            return after
        self._take_back(before)
        return self._iterations(loop, pending, ahead)

    def _take_back(self, count: int) -> None:
        """All syncs but the first `count` of this walk."""
        for sync in self.placed[count:]:
            self._kernel.erase(sync)
        del self.placed[count:]

    def _iterations(self, loop: ir.Operation, pending: Pending, ahead: _Ahead | None) -> Pending:
        counters = self._kernel.counters(loop)
        pending = pending.map(lambda access: access.first_iteration(counters))
        around = _without_iterations(loop, pending, ahead, counters)
        first, *rest = blocks_in(loop)
        while True:
            left = after = self.block(first, pending)
            for block in rest:
                after = self.block(block, after)
            entry = pending | after.map(lambda access: access.next_iteration(loop, counters))
            if entry == pending:
                # A while loop is left behind its condition, a for loop with no iteration at all.
                none = pending._replace(multiplying=around)
                return left if rest else none | after
            pending = entry

    def _visit(self, point: _Point, pending: Pending) -> Pending:
        view, _, accesses = point
        self._issued += reads_for_products(view)
        # No sync ends a copy in flight: that is for the waits, which other passes place.
        if _conflict(accesses, pending.seen):
            pending = self._sync(view.operation, pending)
        # Copies to tensor memory and products keep the order in which their thread issues them.
        copies = until(view) is Until.PRODUCTS_TOLD and not view.PRODUCT
        if _conflict(accesses, pending.stored if copies else pending.reading):
            what = "writes a buffer whose asynchronous reader was not waited for"
            raise self._kernel.context.broken(view.operation, f"'{view.operation.name}' {what}")
        return seen(view, accesses, pending)

    def _sync(self, before: ir.Operation, pending: Pending) -> Pending:
        if self._without is not None:
            raise _Missing
        self.placed.append(self._kernel.sync(before, self._barrier, self._warps))
        return pending.synced()


def _without_iterations(
    loop: ir.Operation, pending: Pending, ahead: _Ahead | None, counters: Counters
) -> tuple[Group, ...]:
    """What tensor cores may still read behind a loop of no iteration."""
    if ahead is None or not is_taken_where_it_runs(ahead.branch, loop):
        return pending.multiplying
    first = frozenset(access.first_iteration(counters) for access in ahead.reads)
    return tuple(group - first for group in pending.multiplying)


def _conflict(accesses: Iterable[Access | ArrayAccess], earlier: Group) -> bool:
    return any(access.conflicts(other) for access in accesses for other in earlier)
