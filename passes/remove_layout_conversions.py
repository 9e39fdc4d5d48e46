"""remove-layout-conversions: conversions that need not be.

Before:   %c = "gpu_tile.convert_layout"(%constant) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
After:    %constant = arith.constant dense<0.0> : tensor<128xf32, #b>

A conversion of a value that costs nothing to make (constant, splat, iota) is made in the wanted
layout; a conversion of a conversion starts from the first value; one between equal layouts goes.

Before:   %rows = "tile.load"(%numbers, %m) : ... -> tensor<128xi32, #a>
          %half = arith.divsi %rows, %two
          %c = "gpu_tile.convert_layout"(%half) : (tensor<128xi32, #a>) -> tensor<128xi32, #b>
After:    %rows = "tile.load"(%numbers, %m) : ... -> tensor<128xi32, #b>
          %c = arith.divsi %rows, %two : tensor<128xi32, #b>

A tile of no more elements than there are threads, that follows in a few steps from its coordinates,
or from loads and gathers of arrays that the kernel only reads, is loaded and computed again, if
that takes a thread a few accesses: threads share what L1 holds, and nobody stores to shared memory
and waits for the others. So a load role can have it, too. (Where it takes 8, in the gradients of
attention, it was 3 % slower.) What numbers rows that are gathered for products, or scales operands
that a load role may compute, is always loaded again: a load role converts nothing. Through a
broadcast nothing else is loaded again: who repeats rows loads them more often (chunks of attention
with bounded context took 145 us for 119, H200).

So is a larger tile that is not gathered, if that takes each thread no more accesses than there
were: a row of 2048 bf16 beside a tile of four, in 512 threads, is one access of 16 bytes for one
of 8.
Does not handle: larger tiles that would take more.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, traced, users
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import element, encoding, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.hardware.target import Feature
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.vector_width import contiguous_dim, element_bytes
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.layouts.components import is_thin
from tilec.passes.layouts.maps import broadcast_source
from tilec.passes.layouts.operand_numbers import serve_operands
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.values import again, replace_op
from tilec.passes.rewriting.walk import find_ops, is_of

_FREE = ("arith.constant", "tensor.splat", "tile.iota")
_STEPS = 4
"""Elementwise ops that are done again rather than their results converted: a conversion is two
barriers and at least as many accesses."""
_ACCESSES = 4
"""Accesses of a thread that load a tile again: what a conversion through shared memory, two
barriers beside, makes at the least."""


@kernel_pass(requires=Level.LAYOUTS)
def remove_layout_conversions(function: ir.Operation, context: PassContext) -> None:
    """Folds conversions into what makes their operand."""
    for op in find_ops(function, ConvertLayoutOp):
        _fold(op.opview, function, context)


def _fold(conversion: ConvertLayoutOp, function: ir.Operation, context: PassContext) -> None:
    source, result = conversion.src, conversion.result
    if not list(result.uses):
        conversion.operation.erase()
        erase_unused(source)
        return
    _, source = traced(source, ConvertLayoutOp)
    if encoding(source) == encoding(result):
        made = source
    else:
        makers = _makers(source, result, function, context)
        if makers is None:
            conversion.src = source
            return
        made = _remade(makers, source)
        for other in users(source, ConvertLayoutOp):
            if other.result.type == result.type:
                other.result.replace_all_uses_with(made)
    replace_op(conversion, made)
    erase_unused(source)


def _makers(
    value: ir.Value, wanted: ir.Value, function: ir.Operation, context: PassContext
) -> dict[ir.Value, Layout] | None:
    """What to make again for a tile, and in which layouts, each behind those it needs; None if that
    is too much or cannot be made again. `wanted`: a tile in the layout that `value` gets."""
    found: dict[ir.Value, Layout] = {}
    steps, last = 0, defining_op(value)
    is_large = prod(shape(value)) > context.num_threads
    fills = context.target.supports(Feature.WGMMA)  # load roles compute operands then

    def visit(value: ir.Value, layout: Layout, repeated: bool = False) -> bool:
        nonlocal steps
        if not is_tile(value) or layout_of(value) == layout:
            return True
        op = defining_op(value)
        if op is None:
            return False
        if value in found:
            return found[value] == layout
        if is_of(op, tile.LoadOp, tile.GatherOp):
            most = min(_ACCESSES, _accesses(layout_of(value), op.opview)) if is_large else _ACCESSES
            is_allowed = is_of(op, tile.LoadOp) or not is_large
            few = is_allowed and _accesses(layout, op.opview) <= most
            able = (few and not repeated) or serve_operands(wanted, scaled=fills and is_thin(value))
            able = able and not read_ahead_hazard(function, [op.opview.src], "the kernel")
            able = able and all(visit(operand, layout, repeated) for operand in op.operands)
        elif is_of(op, tile.BroadcastOp):
            source = op.opview.src
            able = visit(source, broadcast_source(layout, op.opview.dims, shape(source)), True)
        elif defining_op(value, *_FREE) is not None:
            able = True
        else:
            # In front of a loop it costs nothing to speak of.
            steps += last is not None and op.block == last.block
            able = is_elementwise(op) and steps <= _STEPS
            able = able and all(visit(operand, layout, repeated) for operand in op.operands)
        if able:
            found[value] = layout
        return able

    return found if visit(value, layout_of(wanted)) else None


def _accesses(layout: Layout, view: tile.LoadOp | tile.GatherOp) -> int:
    """The number of accesses, of at most 16 bytes each, that load what a thread holds of a tile in
    a row; elements that are gathered, or that are no neighbours in memory, come one by one."""
    values, run = layout.values, 1
    if values and isinstance(view, tile.LoadOp) and values[0].stride == 1:
        run = values[0].size if values[0].dim == contiguous_dim(view.array, view.dims) else 1
    return prod(mode.size for mode in values) // min(run, VECTOR_BYTES // element_bytes(view.src))


def _remade(makers: dict[ir.Value, Layout], value: ir.Value) -> ir.Value:
    """Makes `value` once more in another layout, by ops beside those that make it."""
    made: dict[ir.Value, ir.Value] = {}
    for each, layout in makers.items():
        op = each.owner.operation
        operands = [made.get(operand, operand) for operand in op.operands]
        with ir.InsertionPoint(op):
            type_ = tile_type(shape(each), element(each), layout_attr(layout))
            made[each] = again(op, operands, type_)
    return made.get(value, value)
