"""Fills of buffers through registers, piece by piece: as much is on its way at once as there are
registers for.

Before:   %a = "tile.load"(%x, %m, %k) ... 128 x 64
          %b = "tile.load"(%y, %k, %n) ...
          "gpu_tile.buffer_store"(%a, %s)   "gpu_tile.buffer_store"(%b, %t)
After:    %a = "tile.load"(%x, %m, %k) ... 128 x 64       "gpu_tile.buffer_store"(%a, %s)
          %b0 = "tile.load"(%y, %k, %n) ...               half of the tile
          "gpu_tile.buffer_store"(%b0, view of half of %t)
          %b1 = "tile.load"(%y, %k + 32, %n) ...          "gpu_tile.buffer_store"(%b1, ...)

A fill is a store to a buffer of shared memory, with the loads, constants and elementwise ops that
make its tile and nothing else. Loads stay where they are if something in between may write what
they load. A tile is halved along a dimension whose halves are halves of each thread's registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import BufferStoreOp
from tilec.dialects.gpu_tile.types import is_tensor_buffer, layout_attr, layout_of
from tilec.dialects.tile import LoadOp
from tilec.dialects.types import element, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout, Mode, normalize
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.register_pressure import Peak
from tilec.passes.rewriting.buffers import view_part
from tilec.passes.rewriting.loops import clone_mapped
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary
from tilec.passes.rewriting.values import retype
from tilec.passes.rewriting.walk import find_ops, is_of
from tilec.records import dataclass

LEAST_VALUES = 16
"""Elements of a thread's piece: with fewer on their way it waits for memory most of the time (16
loads of a warp, a sector each, in the 800 clocks that one takes)."""


@dataclass(frozen=True)
class Fill:
    """A store and what makes its tile, in program order."""

    store: ir.Operation
    makers: tuple[ir.Operation, ...]


def fill_in_pieces(most: Callable[[], Peak], registers: int) -> bool:
    """Makes fills smaller where the peak of a part of a program is theirs, until that needs no more
    than `registers`, or is not theirs. Whether anything changed.

    `most`: looks for the peak, anew each time.
    """
    changed = False
    while (peak := most()).registers > registers and peak.op is not None:
        sunk = [_sink(fill) for fill in _fills(peak.op.block)]
        if not any(sunk) and not _halve_around(peak.op):
            break
        changed = True
    return changed


def has_fills(op: ir.Operation) -> bool:
    """Whether there is a fill inside an op: a glance, beside what looking for the peak takes."""
    return any(_fill_by(store) is not None for store in find_ops(op, BufferStoreOp))


def _halve_around(op: ir.Operation) -> bool:
    """Halves a fill that has begun and is not done at `op`. Whether there is one with halves."""
    block = [view.operation for view in op.block.operations]
    at = block.index(op)
    return any(
        _halve(fill)
        for fill in _fills(op.block)
        if block.index(fill.makers[0]) <= at <= block.index(fill.store)
    )


def _fills(block: ir.Block) -> list[Fill]:
    stores = of_kind(block.operations, BufferStoreOp)
    return [fill for store in stores if (fill := _fill_by(store.operation)) is not None]


def _fill_by(store: ir.Operation) -> Fill | None:
    """What a store fills a buffer with; None if that is not loaded for it alone."""
    if is_tensor_buffer(store.opview.dst):
        return None
    makers = _makers(store.opview)
    is_loaded = bool(of_kind(makers, LoadOp))
    return Fill(store, tuple(makers)) if is_loaded else None


def _makers(store: BufferStoreOp) -> list[ir.Operation]:
    """The ops that make the tile of a store, in program order; none if one of them serves anything
    else or is neither a load nor elementwise."""
    wanted, found = [store.value], OpSet()
    while wanted:
        op = defining_op(wanted.pop())
        if op is None or op.block != store.operation.block:
            return []
        if not is_of(op, LoadOp) and not is_elementwise(op):
            return []
        found.add(op)
        wanted += [value for value in op.operands if is_tile(value)]
    users = [use.owner.operation for op in found for result in op.results for use in result.uses]
    if any(user not in found and user != store.operation for user in users):
        return []
    return [v.operation for v in store.operation.block.operations if v.operation in found]


def _sink(fill: Fill) -> bool:
    """Moves what makes a tile in front of its store. Whether anything moved."""
    block = [view.operation for view in fill.store.block.operations]
    first, last = block.index(fill.makers[0]), block.index(fill.store)
    between = [op for op in block[first:last] if op not in fill.makers]
    arrays = [load.src for load in of_kind(fill.makers, LoadOp)]
    if not any(_matters(op) for op in between) or any(
        read_ahead_hazard(op, arrays, "what follows") for op in between
    ):
        return False
    for op in fill.makers:
        op.move_before(fill.store)
    return True


def _matters(op: ir.Operation) -> bool:
    """Whether an op that stands between a load and its store may change how many registers are
    taken."""
    return any(is_tile(value) for value in (*op.operands, *op.results)) or bool(list(op.regions))


def _halve(fill: Fill) -> bool:
    """Replaces a store by two, to views of the buffer. False where there are no halves."""
    store = fill.store.opview
    layout, whole = layout_of(store.value), shape(store.value)
    slowest = _slowest_mode(layout, whole)
    if slowest is None or any(layout_of(op.results[0]) != layout for op in fill.makers):
        return False
    halved = [Mode(m.size // 2, m.stride, m.dim) if m == slowest else m for m in layout.values]
    sizes = tuple(n // 2 if d == slowest.dim else n for d, n in enumerate(whole))
    half = layout_attr(normalize(Layout(layout.threads, tuple(halved))))
    for first in (0, sizes[slowest.dim]):
        _emit_part(fill, [first if d == slowest.dim else 0 for d in range(len(sizes))], sizes, half)
    for op in (fill.store, *reversed(fill.makers)):
        op.erase()
    return True


def _slowest_mode(layout: Layout, sizes: tuple[int, ...]) -> Mode | None:
    """The mode of each thread's registers that halves of a dimension are halves of."""
    if layout.num_values < 2 * LEAST_VALUES or layout.has_phantoms(sizes):
        return None
    for mode in reversed(layout.values):
        if mode.stride and mode.size % 2 == 0 and mode.size * mode.stride == sizes[mode.dim]:
            return mode
    return None


def _emit_part(
    fill: Fill, starts: Sequence[int], sizes: tuple[int, ...], layout: ir.Attribute
) -> None:
    store = fill.store.opview
    mapped: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(fill.store), fill.store.location:
        for op in fill.makers:
            copy = clone_mapped(op, mapped)
            (made,) = copy.results
            retype(made, tile_type(sizes, element(made), layout))
            if is_of(copy, LoadOp):
                _move_on(copy.opview, starts)
        BufferStoreOp.build(mapped[store.value], view_part(store.dst, starts, sizes))


def _move_on(load: LoadOp, starts: Sequence[int]) -> None:
    """Moves a load, at the insertion point's end, on by `starts` elements along its dimensions."""
    op = load.operation
    with ir.InsertionPoint(op):
        for dim, start in zip(load.dims, starts, strict=True):
            if start:
                at = op.operands[1 + dim]
                op.operands[1 + dim] = binary("arith.addi", at, start)
