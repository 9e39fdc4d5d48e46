"""Operands of matrix instructions in shared memory: buffers that lie as the instruction reads them.

PTX ISA 9.0, "wgmma: Shared Memory Matrix Layout": panels as wide as the widest swizzle that the
contiguous dimension is a multiple of. Types of 16 bits may be contiguous along either dimension,
others along k only. So a tile and its transpose, where both are operands, are one buffer and a view
of it.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import made_by, users
from tilec.dialects.gpu_tile import BufferStoreOp, ConvertLayoutOp, TransposeViewOp
from tilec.dialects.gpu_tile.types import BufferType, layout_of
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.passes.contract import PassContext
from tilec.passes.layouts.maps import run_first
from tilec.passes.layouts.panels import operand_layout, panel_elements
from tilec.passes.layouts.runs import register_run
from tilec.passes.rewriting.buffers import stored
from tilec.passes.rewriting.loops import innermost_loop, outside_loops


def staged(
    dot: tile.DotOp, value: ir.Value, k_dim: int, row: MmaInstruction, context: PassContext
) -> ir.Value:
    """A buffer that holds `value`, made in front of the loops that do not change it.

    It lies as the instruction `row` reads it; `k_dim`: the dimension of `value` that is summed
    over.
    """
    value = _as_loaded(value)
    along = _contiguous(value, k_dim, row)
    shared = operand_layout(shape(value), element(value), along, _part(along, k_dim, row))
    type_ = BufferType.of(value, shared)
    side = "lhs" if k_dim else "rhs"
    return staged_as(dot, value, type_, context, side, "the instruction reads it from there")


def _as_loaded(value: ir.Value) -> ir.Value:
    """A tile as a loop loads it, where registers want it converted: a tensor copy may fill the
    buffer then, which registers read, too (`copies/copies_beside.py`)."""
    convert = made_by(value, ConvertLayoutOp)
    load = None if convert is None else made_by(convert.src, tile.LoadOp)
    if load is None or innermost_loop(load.operation) is None:
        return value
    return load.result


def staged_as(
    dot: tile.DotOp,
    value: ir.Value,
    type_: BufferType,
    context: PassContext,
    side: str,
    why: str,
) -> ir.Value:
    """A buffer of `type_` that holds `value`, made in front of the loops that do not change it.

    Dots that want the same value in such a buffer use one together. `side` ("lhs" | "rhs") and
    `why` are for the report.
    """
    place = _beside_load(value, outside_loops(value, dot.operation))
    known = _already_staged(value, type_, place)
    if known is not None:
        return known
    chosen = f"{side} in {type_.size_bytes} bytes of shared memory"
    context.report.add("dot operand", dot.operation, chosen, why, layout=str(type_.layout))
    with ir.InsertionPoint(place):
        return stored(value, type_)


def _beside_load(value: ir.Value, place: ir.Operation) -> ir.Operation:
    """Finds where a value is put into its buffer: where an iteration loads it for a product in a
    branch, in front of that branch, beside the load, as what is filled there can be copied ahead.
    Else at `place`."""
    transpose = made_by(value, tile.TransposeOp)
    load = made_by(value if transpose is None else transpose.src, tile.LoadOp)
    if load is None or value.owner.operation.block != load.operation.block:
        return place
    block, at = load.operation.block, place
    while at.block != block and at.parent.name == "scf.if":
        at = at.parent
    return at if at.block == block and block.owner.name in ("scf.for", "scf.while") else place


def filled_buffer(value: ir.Value, type_: BufferType, place: ir.Operation) -> ir.Value:
    """A buffer of `type_` that holds `value`, made in front of `place` unless there is one."""
    known = _already_staged(value, type_, place)
    with ir.InsertionPoint(place):
        return known if known is not None else stored(value, type_)


def _already_staged(value: ir.Value, wanted: BufferType, place: ir.Operation) -> ir.Value | None:
    """A buffer that another dot had `value`, or its transpose, stored in, in front of `place`."""
    known = _stored(value, wanted, place)
    if known is not None or len(wanted.shape) != 2:
        return known
    transposed = replace(wanted, shape=wanted.shape[::-1], layout=wanted.layout.permute((1, 0)))
    for transpose in _transposes(value):
        known = _stored(transpose, transposed, place)
        if known is not None:
            with ir.InsertionPoint(place):
                return TransposeViewOp.build(known, permutation=(1, 0))
    return None


def _stored(value: ir.Value, wanted: BufferType, place: ir.Operation) -> ir.Value | None:
    before = [view.operation for view in place.block.operations]
    before = before[: before.index(place)]
    for store in users(value, BufferStoreOp):
        if store.operation not in before:
            continue
        # It may as well lie in tensor memory, where an accumulator begins.
        if store.dst.type == wanted.type() and store.dst.owner.operation.block == place.block:
            return store.dst
    return None


def _transposes(value: ir.Value) -> list[ir.Value]:
    """Lists the matrix that this one is the transpose of, if any, and its own transposes."""
    found = [transpose.result for transpose in users(value, tile.TransposeOp)]
    own = made_by(value, tile.TransposeOp)
    return found if own is None else [own.src, *found]


def _contiguous(value: ir.Value, k_dim: int, row: MmaInstruction) -> int:
    """The dimension along which the buffer is contiguous: the tile's own where that is legal."""
    if bit_width(element(value)) != 16:
        return k_dim
    along = _run_dim(layout_of(value), k_dim)
    is_panel = panel_elements(shape(value)[along], element(value), _part(along, k_dim, row))
    return along if is_panel else k_dim


def _part(along: int, k_dim: int, row: MmaInstruction) -> int | None:
    """The rows or columns that an instruction reads; along k it may begin anywhere in a panel."""
    return None if along == k_dim else row.m if k_dim else row.n


def _run_dim(layout: Layout, k_dim: int) -> int:
    """The dimension along which neighbours lie in one thread's registers, most of them, or in those
    of the next where vectors are short; that of k where neither is so."""
    runs = {dim: register_run(run_first(layout, dim), dim) for dim in (k_dim, 1 - k_dim)}
    longest = max(runs, key=runs.__getitem__)
    if runs[longest] > 1:
        return longest
    first = layout.threads[0] if layout.threads else None
    return first.dim if first is not None and first.stride == 1 and first.size > 1 else k_dim
