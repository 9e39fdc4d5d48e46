"""How long what lies in shared and tensor memory is alive: buffers, rings and mbarriers.

A buffer lives from its alloc to its last use in program order; a use in a loop that does not hold
the alloc keeps it alive to the loop's end, and asynchronous readers (tensor cores, the copy engine)
use it until they are waited for. Roles side by side run at any speed: what one of them uses lives
as long as all of them, except beside what the same role alone uses. Rings always live, and so
does what warps store through by themselves: each waits for its own copies alone. So do answers
to requests for programs (`next_program`): a ring orders their readers. Other CTAs write into what
has a `cluster_store` or a `cluster_send` whenever they come to it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from mlir import ir

from tilec.dialects.constraints import TENSOR_MAP
from tilec.dialects.effects import ends, read_late_by, until
from tilec.dialects.gpu_tile import AllocOp
from tilec.dialects.gpu_tile.role import roles_beside
from tilec.dialects.gpu_tile.types import (
    BOX_ALIGNMENT,
    any_buffer_of,
    buffer_of,
    is_buffer,
    is_tensor_buffer,
    tensor_buffer_of,
)
from tilec.dialects.op import TileOp, names_where
from tilec.dialects.traits import Until
from tilec.dialects.types import show
from tilec.hardware.powers import power_above
from tilec.hardware.tensor_memory import LEAST_COLUMNS
from tilec.passes.analysis.async_readers import awaited
from tilec.passes.contract import show_location
from tilec.passes.demands.kernels import is_explicit
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.walk import blocks_in, find_ops, ops_named, role_of, users_of
from tilec.records import dataclass


@dataclass
class Allocation:
    """What an op whose trait is `OpTraits.PLACED` takes: bytes of shared memory, or columns of
    tensor memory, and when.

    `first`, `last`: its uses; `span`: those and the neighbouring roles'.
    """

    op: Any
    size: int
    alignment: int
    first: int
    last: int
    span: tuple[int, int]
    roles: OpSet = field(default_factory=OpSet)
    offset: int = 0

    def meets(self, other: Allocation) -> bool:
        """Whether both allocations are alive at some time, so that they may not share bytes."""
        if len(self.roles) == 1 and self.roles == other.roles:
            return self.first <= other.last and other.first <= self.last
        return self.span[0] <= other.span[1] and other.span[0] <= self.span[1]

    def __str__(self) -> str:
        slots = getattr(self.op, "slots", None)
        what, unit = self.op.PLACED, "bytes"
        what = f"the {what}" if slots is None else f"a {what} of {slots} slots"
        if isinstance(self.op, AllocOp):
            buffer = any_buffer_of(self.op.result)
            what = f"{show(buffer.shape)}x{buffer.element}"
            unit = "columns" if is_tensor_buffer(self.op.result) else unit
        return f"{self.size} {unit} for {what} ({show_location(self.op.operation)})"


def find_allocations(function: ir.Operation) -> list[Allocation]:
    """Lists what a kernel has in shared memory, with lifetimes, in program order."""
    placed = [op.opview for op in ops_named(function, _placed())]
    placed = [v for v in placed if not isinstance(v, AllocOp) or is_buffer(v.result)]
    return _Lifetimes(function).shared(placed) if placed else []


def find_tensor_allocations(function: ir.Operation) -> list[Allocation]:
    """Lists what a kernel has in tensor memory, with lifetimes, in program order."""
    allocs = [op.opview for op in find_ops(function, AllocOp)]
    allocs = [alloc for alloc in allocs if is_tensor_buffer(alloc.result)]
    return _Lifetimes(function).tensor(allocs) if allocs else []


@functools.cache
def _placed() -> frozenset[str]:
    return names_where(lambda kind: kind is AllocOp or bool(kind.PLACED))


class _Lifetimes:
    """The order of a kernel's ops as numbers, and the spans of its allocations in them.

    `_position`: an op's own number. `_end`: the number of the last op that it holds.
    """

    def __init__(self, function: ir.Operation) -> None:
        self._function = function
        self._position: OpMap[int] = OpMap()
        self._end: OpMap[int] = OpMap()
        self._groups: OpMap[tuple[int, int]] = OpMap()
        self._met = 0
        self._visit(function)

    def _visit(self, op: ir.Operation) -> None:
        self._position[op] = self._met
        self._met += 1
        for block in blocks_in(op):
            views = list(block.operations)
            for view in views:
                self._visit(view.operation)
            for group in roles_beside(views):
                span = self._position[group[0]], self._end[group[-1]]
                self._groups.update((role, span) for role in group)
        self._end[op] = self._met

    def shared(self, placed: Sequence[TileOp]) -> list[Allocation]:
        """See `find_allocations`."""
        always = (0, self._end[self._function])
        found = [
            self._shared_buffer(view)
            if isinstance(view, AllocOp)
            else Allocation(view, view.bytes, view.ALIGNMENT, *always, always)
            for view in placed
        ]
        return self._as_written(found)

    def tensor(self, allocs: Sequence[AllocOp]) -> list[Allocation]:
        """See `find_tensor_allocations`."""
        found = []
        for alloc in allocs:
            columns = tensor_buffer_of(alloc.result).columns
            step = min(LEAST_COLUMNS, power_above(columns))
            found.append(self._buffer(alloc, columns, step))
        return self._as_written(found)

    def _as_written(self, found: list[Allocation]) -> list[Allocation]:
        """Gives each buffer of an explicit kernel the whole kernel for its lifetime, so that none
        shares memory with another."""
        always = (0, self._end[self._function])
        if is_explicit(self._function):
            for each in found:
                each.span, each.roles = always, OpSet()
        return found

    def _shared_buffer(self, alloc: AllocOp) -> Allocation:
        type_ = buffer_of(alloc.result)
        copied = any(user.opview.takes(TENSOR_MAP) for user in users_of(alloc.result))
        alignment = max(type_.alignment_bytes, BOX_ALIGNMENT if copied else 1)
        return self._buffer(alloc, type_.size_bytes, alignment)

    def _buffer(self, alloc: AllocOp, size: int, alignment: int) -> Allocation:
        op = alloc.operation
        users = list(users_of(alloc.result))
        moments = [self._between(op, moment) for u in users for moment in (u, self._finished(u))]
        first = min([self._position[op], *(start for start, _ in moments)])
        last = max([self._position[op], *(end for _, end in moments)])
        roles = OpSet(r for r in map(role_of, [op, *users]) if r is not None)
        span = (first, last)
        for role in roles:
            start, end = self._groups[role]
            span = (min(span[0], start), max(span[1], end))
        if any(role_of(user) is None for user in users):
            roles = OpSet()
        if any(user.opview.OWN_BUFFERS for user in users):
            first, last = span = (0, self._end[self._function])
            roles = OpSet()
        return Allocation(alloc, size, alignment, first, last, span, roles)

    def _between(self, alloc: ir.Operation, moment: ir.Operation) -> tuple[int, int]:
        """The span, first and last position, from an alloc to a moment of its use.

        A loop around the moment alone counts to its end. A loop around the alloc alone counts from
        its start: its next iteration may begin before that moment.
        """
        around = [] if moment == self._function else [moment, *enclosing_ops(moment)]
        start = alloc
        while start != self._function:
            for op in around:
                if op.block == start.block:
                    end = self._position[op] if op == moment else self._end[op]
                    return self._position[start], end
            start = start.parent
        return self._position[self._function], self._end[self._function]

    def _finished(self, user: ir.Operation) -> ir.Operation:
        """The wait behind which an asynchronous reader is done, else the reader itself."""
        if not read_late_by(user.opview):
            return user
        end = until(user.opview)
        if end is Until.PRODUCTS_TOLD:
            # Beside other roles nothing here waits for it: its readers' barriers do.
            return awaited(user.opview) or self._function
        at = user
        while at != self._function:
            behind = False
            for view in at.block.operations:
                if behind and ends(view) is end and view.pending == 0:
                    return view.operation
                behind = behind or view.operation == at
            at = at.parent
        return self._function
