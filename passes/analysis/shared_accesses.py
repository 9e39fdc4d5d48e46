"""Accesses to shared and tensor memory: which bytes or columns, which slot of a ring, which
elements each thread touches.

Two boxes of one buffer that do not overlap, buffers that lie in other bytes, slots of a ring whose
distance is no multiple of its length, and accesses in which each thread touches the elements it
touches in the other do not conflict. A slot is known by its distance from a loop's counter; the end
of an iteration is one nearer than the start of the next.

What orders memory for other CTAs does so for the thread that says it. So that it speaks for all,
accesses to global memory count as reads, and orders as writes, of one more thing that is shared.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilec.dialects.def_use import defining_op, made_by, users
from tilec.dialects.effects import read_by, written_by
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferCountOp,
    BufferLoadOp,
    BufferStoreOp,
    CpAsyncGatherOp,
    CpAsyncOp,
    RingPositionOp,
    RingTurn,
    SlotOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.types import (
    TensorBuffer,
    any_buffer_of,
    buffer_of,
    is_tensor_buffer,
    layout_of,
)
from tilec.dialects.op import TileOp, class_of
from tilec.dialects.tile import ArrayOp, FenceOp
from tilec.dialects.types import is_array
from tilec.hardware.layout import Layout
from tilec.hardware.tensor_memory import LANES
from tilec.passes.analysis.array_accesses import ArrayAccess, array_accesses
from tilec.passes.analysis.copy_layout import copy_layout
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.hazards import orders_memory
from tilec.passes.contract import PassContext
from tilec.passes.layouts.matrix_load import plan_matrix_load, plan_matrix_store
from tilec.passes.rewriting.loops import carried_by, inits_of, yielded_by
from tilec.passes.rewriting.walk import all_ops
from tilec.records import dataclass


@dataclass(frozen=True)
class Access:
    """An access to bytes [start, end) of shared memory, or to such columns of tensor memory.

    `box`: its (offsets, sizes), where known.
    `slot`: (loop counter or None for 0, distance from it, slots), where it is one slot of a ring.
    `kind`: the type of the whole buffer or ring. Boxes and slots of two kinds do not compare, even
    where they lie in the same bytes. `threads`: which elements each thread touches, if no two touch
    the same. `own_lanes`: each warp touches lanes of tensor memory that no other warp reaches.
    `adds`: atomically, which needs no order to others that do.
    """

    writes: bool
    start: int
    end: int
    kind: ir.Type
    box: tuple[tuple[int, ...], tuple[int, ...]] | None
    slot: tuple[ir.Value | None, int, int] | None = None
    threads: Layout | None = None
    own_lanes: bool = False
    adds: bool = False

    def conflicts(self, other: Access | ArrayAccess) -> bool:
        """Whether another thread's access `other` needs an order to this one: one of them writes,
        and they may meet at the same bytes."""
        if (
            isinstance(other, ArrayAccess)
            or not (self.writes or other.writes)
            or self.end <= other.start
            or other.end <= self.start
        ):
            return False
        if is_tensor_buffer(self.kind) != is_tensor_buffer(other.kind):
            return False
        if (self.own_lanes and other.own_lanes) or (self.adds and other.adds):
            return False
        if (self.start, self.kind) != (other.start, other.kind):
            return True
        mine, its = self.slot, other.slot
        if mine and its and _is_same(mine[0], its[0]) and (mine[1] - its[1]) % mine[2]:
            return False
        if self.threads is not None and (self.threads, self.box) == (other.threads, other.box):
            return False
        if self.box is None or other.box is None or len(self.box[0]) != len(other.box[0]):
            return True
        return all(
            a < b + size_b and b < a + size_a
            for a, size_a, b, size_b in zip(*self.box, *other.box, strict=True)
        )

    def next_iteration(self, loop: ir.Operation, counters: Counters) -> Access:
        """The same access seen from the next iteration of a loop."""
        if self.slot is None or self.slot[0] not in counters.steps:
            return self
        counter, distance, slots = self.slot
        return replace(self, slot=(counter, (distance - counters.steps[counter]) % slots, slots))

    def first_iteration(self, counters: Counters) -> Access:
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
class Counters:
    """The loop-carried counts of rings that grow by a constant: that constant, and the first value
    if it is known."""

    steps: dict[ir.Value, int]
    starts: dict[ir.Value, int]


def ring_counters(loop: ir.Operation) -> Counters:
    """The counts of rings that a loop (scf.for) carries; none of another loop."""
    if loop.name != "scf.for":
        return Counters({}, {})
    steps, starts = {}, {}
    slots = zip(carried_by(loop), inits_of(loop), yielded_by(loop), strict=True)
    for argument, init, yielded in slots:
        base, step = _split_sum(yielded)
        if base == argument and step and _counts_a_ring(argument):
            steps[argument] = step
            start = constant_of(init)
            if start is not None:
                starts[argument] = start
    return Counters(steps, starts)


def _counts_a_ring(value: ir.Value) -> bool:
    return any(
        isinstance(user, (RingPositionOp, RingTurn))
        or (user.operation.name == "arith.addi" and _counts_a_ring(user.operation.results[0]))
        for user in users(value)
    )


def _split_sum(value: ir.Value) -> tuple[ir.Value, int]:
    """Splits a value into (base, sum of the constants that are added to it)."""
    total = 0
    while (op := defining_op(value, "arith.addi")) is not None:
        lhs, rhs = op.operands
        step = constant_of(rhs)
        if step is None:
            break
        value, total = lhs, total + step
    return value, total


def accesses_inside(op: ir.Operation, context: PassContext) -> list[Access | ArrayAccess]:
    """Lists every access of an op and of the ops inside it."""
    ops = [inner for inner in all_ops(op, inner_first=True) if class_of(inner) is not None]
    return [access for inner in ops for access in accesses_of(inner.opview, context)]


def accesses_of(view: object, context: PassContext) -> list[Access | ArrayAccess]:
    """The accesses of one op; an asynchronous one's as if it happened at its issue."""
    if not isinstance(view, TileOp) or not (view.READS or view.WRITES or isinstance(view, FenceOp)):
        return []
    return [*_buffer_accesses(view, context), *array_accesses(view)]


def _buffer_accesses(view: TileOp, context: PassContext) -> list[Access]:
    if isinstance(view, (ArrayOp, FenceOp)):
        return [Access(orders_memory(view), *_GLOBAL, ir.IndexType.get(), None)]
    if view.OWN_BUFFERS:
        return []
    written = written_by(view)
    read = [v for v in read_by(view) if v not in written and not is_array(v)]
    return [
        *(_access(view, buffer, context, writes=False) for buffer in read),
        *(_access(view, buffer, context, writes=True) for buffer in written),
    ]


_GLOBAL = (-1, 0)
"""Bytes that no buffer has."""


def _access(view: TileOp, buffer: ir.Value, context: PassContext, *, writes: bool) -> Access:
    if isinstance(view, CpAsyncOp):
        return _describe(buffer, copy_layout(view, context), writes=writes)
    if isinstance(view, CpAsyncGatherOp):
        return _describe(buffer, layout_of(view.elements), writes=writes)
    if not isinstance(view, (BufferLoadOp, BufferStoreOp)):
        counts = isinstance(view, BufferCountOp)
        return replace(_describe(buffer, None, writes=writes), adds=counts)
    threads = _written_by(view, context) if writes else _read_by(view)
    access = _describe(buffer, threads, writes=writes)
    return replace(access, own_lanes=_has_own_lanes(buffer, context))


def _has_own_lanes(buffer: ir.Value, context: PassContext) -> bool:
    """Whether each warp reaches lanes of its own: warp w reaches 32 from 32 (w mod 4) on (PTX ISA
    9.0, "tcgen05.ld"), so what up to four warps load and store follows each warp's own order."""
    return is_tensor_buffer(buffer) and context.num_warps <= LANES // context.target.warp_size


def _written_by(store: BufferStoreOp, context: PassContext) -> Layout | None:
    """Says which elements each thread writes; None where a thread writes some for others."""
    layout = layout_of(store.value)
    if is_tensor_buffer(store.dst):
        return layout
    buffer = buffer_of(store.dst)
    kind = (buffer.shape, buffer.layout, buffer.element_bytes)
    # By stmatrix a thread writes rows for others.
    return None if plan_matrix_store(layout, *kind, context) is not None else layout


def _read_by(load: BufferLoadOp) -> Layout | None:
    """Says which elements each thread reads; None where a thread reads some for others."""
    layout = layout_of(load.result)
    if is_tensor_buffer(load.src):
        return layout
    buffer = buffer_of(load.src)
    # By ldmatrix a thread reads rows for others.
    plan = plan_matrix_load(layout, buffer.shape, buffer.layout, buffer.element_bytes)
    return None if plan is not None else layout


def _describe(buffer: ir.Value, layout: Layout | None, *, writes: bool) -> Access:
    sizes = any_buffer_of(buffer).shape
    if layout is not None and not _is_private(layout, sizes):
        layout = None
    offsets: tuple[int, ...] | None = (0,) * len(sizes)
    value, slot = buffer, None
    while made_by(value, AllocOp) is None:
        view = value.owner
        if isinstance(view, SlotOp):
            slot = _slot(view)
        elif not isinstance(view, ViewOp):
            offsets = None
        else:
            steps = [constant_of(v) for v in view.offsets]
            known = [step for step in steps if step is not None]
            if offsets is None or len(known) < len(steps):
                offsets = None
            else:
                offsets = tuple(a + b for a, b in zip(offsets, known, strict=True))
        value = view.src
    start = value.owner.options["offset"]
    whole = any_buffer_of(value)
    end = start + (whole.columns if isinstance(whole, TensorBuffer) else whole.size_bytes)
    if offsets is None:
        return Access(writes, start, end, value.type, None, slot)
    return Access(writes, start, end, value.type, (offsets, sizes), slot, layout)


def _is_private(layout: Layout, sizes: tuple[int, ...]) -> bool:
    """Whether each thread touches elements of its own: no copies, nothing clamped into the tile."""
    shared = any(not mode.stride and mode.size > 1 for mode in layout.threads)
    return not shared and not layout.has_phantoms(sizes)


def _slot(op: SlotOp) -> tuple[ir.Value | None, int, int] | None:
    slots = any_buffer_of(op.src).slots
    fixed = constant_of(op.index)
    if fixed is not None:
        return None, fixed, slots
    turn = made_by(op.index, RingPositionOp, RingTurn)
    if turn is None:
        return None
    counter, distance = _split_sum(turn.count)
    return counter, distance % turn.slots, turn.slots
