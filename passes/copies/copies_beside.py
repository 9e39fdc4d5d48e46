"""What registers want of a loop of tensor copies: small tiles that no product reads, tiles that
become operands once warps have computed with them, fragments of warps' own products, and operands
that registers want, too.

Before:   %t = "tile.load"(%logs, %m)   ...   %u = "gpu_tile.convert_layout"(%t)
After:    %t = "tile.load"(%logs, %m)   %s = "gpu_tile.alloc"()   "gpu_tile.buffer_store"(%t, %s)
          ...   %u = "gpu_tile.buffer_load"(%s)

A tensor copy takes the place of load and store then (`tensor_copies`): a load would be waited for
in each iteration, and a conversion across warps would have all of them meet twice. Each reader
takes the tile from the buffer in the layout that it wants, where it wants it. Of an operand it is
the product's own buffer, and so of fragments. What warps would like best in padded rows (a bias of
the scores of attention) lies in panels as the copy engine writes them, if two slots of all fit.
Does not handle: other tiles of more than a part of what the products read, which would take slots
of their ring; what no tensor copy brings (a length that is no whole 16 bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.effects import is_fill, is_product
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import (
    BufferLoadOp,
    BufferStoreOp,
    ConvertLayoutOp,
    TransposeViewOp,
)
from tilec.dialects.gpu_tile.types import BufferType, layout_of
from tilec.dialects.types import is_tile
from tilec.hardware.ring_stages import around_ring
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.contract import PassContext
from tilec.passes.copies.buffer_fills import Fill, Read, uses_of, why_no_copy
from tilec.passes.copies.tensor_copies import (
    TensorCopy,
    panels_for,
    plan_tensor_copy,
    why_no_tensor_copy,
)
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.rewriting.buffers import stored
from tilec.passes.rewriting.loops import behind, first_in
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import attempt
from tilec.passes.rewriting.values import replace_uses
from tilec.passes.rewriting.walk import is_of, kernel_of, uses_behind

SMALL_PART = 8
"""All such tiles of a block take at most an eighth of what its products read: a slot in eight. Logs
and deltas (f32) of attention's gradients take that beside heads of 16 elements."""


def plan_copies_beside(
    copies: Sequence[TensorCopy], passed_on: OpSet, facts: Divisibility, context: PassContext
) -> list[TensorCopy]:
    """The copies of what the block of `copies` loads besides, fragments and what goes through
    buffers of its own now.

    `passed_on`: loads for what warps fill buffers with, which stay in front of that.
    """
    block = copies[0].load.operation.block
    taken = passed_on | OpSet(copy.load for copy in copies)
    room = sum(copy.bytes for copy in copies) // SMALL_PART
    found = []
    for view in list(block.operations):
        if not isinstance(view, tile.LoadOp) or view in taken or not is_tile(view.result):
            continue
        found += _of_fills(view, facts, context)
        buffer = _buffer_for(view)
        is_small = buffer.size_bytes <= room
        is_wanted = is_small or _becomes_operand(view)
        if not is_wanted:
            continue
        if _why_not(view, buffer, facts, context) is not None:
            buffer = panels_for(view)
            if not buffer or _why_not(view, buffer, facts, context) is not None:
                continue
            if not _two_fit([*copies, *found], buffer, context):
                continue
        store = _through_buffer(view, buffer)
        planned = plan_tensor_copy(view, store, tuple(view.dims), facts, context)
        room -= planned.bytes if is_small else 0
        found.append(planned)
    return found


def _of_fills(load: tile.LoadOp, facts: Divisibility, context: PassContext) -> Sequence[TensorCopy]:
    """The copies of a load that only fills buffers, of fragments; none unless each is possible."""
    uses = uses_of(load.result, load.dims)
    if why_no_copy(load, uses, False, VECTOR_BYTES, "") is not None:
        return ()
    planned = [
        attempt(plan_tensor_copy, load, f.store, f.dims, facts, context)[0] for f in uses.fills
    ]
    copies = [copy for copy in planned if copy is not None]
    return copies if len(copies) == len(planned) else ()


def read_operands_back(loads: Iterable[Read], facts: Divisibility, context: PassContext) -> None:
    """Has registers read what a product multiplies as it is from the product's buffer, which a
    tensor copy may fill then."""
    for load in loads:
        uses = uses_of(load.result, load.along)
        if not isinstance(load, tile.LoadOp) or not uses.in_registers or not uses.fills:
            continue
        planned = (
            attempt(plan_tensor_copy, load, f.store, f.dims, facts, context) for f in uses.fills
        )
        refused = any(why for _, why in planned)
        if refused or why_no_copy(load, uses, True, VECTOR_BYTES, "") is not None:
            continue
        for fill in uses.fills:
            _alone(fill, load)
        _read_back(_readers(load), _filled_first(load, uses.fills), load.operation.block)
        why = "registers read it there, too"
        context.report.add("asynchronous copy", load.operation, "by its product's buffer", why)


def _alone(fill: Fill, load: tile.LoadOp) -> None:
    """Leaves a fill the transposes on its way; who else reads one gets its own."""
    reader = fill.store.operation
    while (way := reader.operands[0].owner.operation) != load.operation:
        others = [use for use in way.results[0].uses if use.owner.operation != reader]
        if others:
            with ir.InsertionPoint(behind(way)):
                replace_uses(others, way.clone().results[0])
        reader = way


def _filled_first(load: tile.LoadOp, fills: Sequence[Fill]) -> ir.Value:
    """Moves a fill right behind its load, rather of the tile as it is than of its transpose; gives
    the buffer as one of the tile."""
    dims = load.along
    own = min(fills, key=lambda fill: fill.dims != dims)
    buffer = own.store.dst
    buffer.owner.operation.move_before(load.operation)
    way = [own.store.operation]  # through its transposes
    while (op := way[0].operands[0].owner) != load.operation:
        way.insert(0, op)
    for before, op in pairwise([load.operation, *way]):
        op.move_after(before)
    if own.dims == dims:
        return buffer
    with ir.InsertionPoint(behind(own.store.operation)), load.operation.location:
        return TransposeViewOp.build(buffer, permutation=[own.dims.index(dim) for dim in dims])


def _buffer_for(load: tile.LoadOp) -> BufferType:
    """Where the tile lies as its readers like it best."""
    return buffer_for(load.result, *(layout_of(value) for value, _ in _readers(load)))


def _two_fit(copies: Sequence[TensorCopy], buffer: BufferType, context: PassContext) -> bool:
    """Whether shared memory holds what the copies bring twice, with such a buffer beside it."""
    filled = OpSet(copy.store.dst.owner for copy in copies)
    slot = sum(copy.bytes for copy in copies) + buffer.slot_bytes
    rest = shared_bytes(kernel_of(copies[0].load.operation), without=filled)
    return rest + 2 * slot + around_ring() <= context.target.shared_bytes


def _becomes_operand(load: tile.LoadOp) -> bool:
    """Whether a product of the block multiplies what is computed of a tile, element by element."""
    block = load.operation.block

    def passed_on(use: ir.OpOperand) -> Iterable[ir.Value]:
        op = use.owner.operation
        passes = is_elementwise(op) or is_of(op, ConvertLayoutOp)
        return op.results if passes and op.block == block else ()

    users = (use.owner.opview for use in uses_behind(load.result, passed_on))
    return any(is_fill(user) or is_product(user) for user in users if user.operation.block == block)


def _readers(load: tile.LoadOp) -> list[tuple[ir.Value, list[ir.OpOperand]]]:
    """What a load from the buffer may replace, each in its layout, with the uses of each: the tile
    itself, and what is converted from it."""
    direct, found, views = [], [], OpSet(uses_of(load.result, load.along).views)
    for use in load.result.uses:
        view = use.owner.opview
        if is_fill(view) or view.operation in views:
            continue
        if isinstance(view, ConvertLayoutOp):
            found.append((view.result, list(view.result.uses)))
        else:
            direct.append(use)
    return [(load.result, direct), *found] if direct else found


def _why_not(
    load: tile.LoadOp, buffer: BufferType, facts: Divisibility, context: PassContext
) -> str | None:
    """Why a load is no tensor copy into such a buffer, or None."""
    uses = uses_of(load.result, load.dims)
    if uses.fills or not uses.in_registers:
        return "it fills buffers"
    reason = why_no_copy(load, uses, True, VECTOR_BYTES, "")
    return reason or why_no_tensor_copy(load, buffer, load.dims, facts, context)


def _through_buffer(load: tile.LoadOp, buffer: BufferType) -> BufferStoreOp:
    """Has the readers of a load read a buffer, which it fills."""
    readers = _readers(load)
    with ir.InsertionPoint(behind(load.operation)), load.operation.location:
        filled = stored(load.result, buffer)
    _read_back(readers, filled, load.operation.block)
    return next(use.owner.opview for use in filled.uses if is_fill(use.owner.opview))


def _read_back(
    readers: list[tuple[ir.Value, list[ir.OpOperand]]], filled: ir.Value, block: ir.Block
) -> None:
    """Has the readers of a tile read the buffer that it fills."""
    for value, uses in readers:
        first = first_in(block, [use.owner.operation for use in uses])
        with ir.InsertionPoint(first), value.owner.location:
            loaded = BufferLoadOp.build(filled, results=[value.type])
        replace_uses(uses, loaded)
        if is_of(value.owner, ConvertLayoutOp):
            value.owner.operation.erase()
