"""The numbers of rows that a load role gathers, apart from the same numbers elsewhere.

Before:   %q = arith.remsi %pixel, %width      "tile.gather"(%x, ..., %q, ...)   (operand of a dot)
                                               "tile.scatter"(%sum, %y, ..., %q, ...)
After:    %q = arith.remsi %pixel, %width      "tile.scatter"(%sum, %y, ..., %q, ...)
          %q1 = arith.remsi %pixel1, %width    "tile.gather"(%x, ..., %q1, ...)

The warps that load compute the numbers anyway, and no others need them in the layout that the
gather wants. Computed apart, each copy has a layout of its own, and nobody converts between the
two. Loads are not repeated: where that pays, remove-layout-conversions does it.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, users
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.types import is_tile
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.walk import find_ops, is_of

_MADE = (tile.BroadcastOp, tile.IotaOp)


def separate_operand_numbers(function: ir.Operation) -> None:
    """Rewrites the gathers of a kernel whose rows are operands of dots."""
    for op in find_ops(function, tile.GatherOp):
        if _is_operand(op.results[0]):
            _separate(op)


def serve_operands(value: ir.Value, *, scaled: bool = False) -> bool:
    """Whether a tile's elements, or what is computed from them, say which rows of operands are
    gathered, and serve nothing else; or, `scaled`, make operands of what is loaded."""
    readers = [use.owner for use in value.uses]
    return bool(readers) and all(
        _is_operand(user.results[0])
        if is_of(user, tile.GatherOp)
        else bool(user.results) and _makes_operands(user.results[0], scaled)
        for user in readers
    )


def _makes_operands(value: ir.Value, scaled: bool) -> bool:
    if not _is_made(value):
        return False
    own = scaled and _is_operand(value) and _is_of_loads(value)
    return own or serve_operands(value, scaled=scaled)


def _is_of_loads(value: ir.Value) -> bool:
    """Whether a tile follows from loaded ones, element by element."""
    op = defining_op(value)
    if op is None or isinstance(op.opview, tile.LoadOp):
        return op is not None
    passed = _is_made(value) or isinstance(op.opview, (ConvertLayoutOp, tile.TransposeOp))
    tiles = [operand for operand in op.operands if is_tile(operand)]
    return op.name == "arith.constant" or (passed and all(map(_is_of_loads, tiles)))


def _is_operand(value: ir.Value) -> bool:
    readers = users(value)
    return bool(readers) and all(
        isinstance(user, tile.DotOp)
        or (isinstance(user, tile.TransposeOp) and _is_operand(user.result))
        for user in readers
    )


def _separate(gather: ir.Operation) -> None:
    part = _numbers(gather)
    own, shared = OpSet((gather, *part)), OpSet()
    for op in reversed(part):
        if any(user not in own or user in shared for user in users(op.results[0])):
            shared.add(op)
    copies = OpMap((op, op.clone(ir.InsertionPoint(op)).operation) for op in part if op in shared)
    for op in (gather, *part):
        target = copies.get(op, op)
        for number, operand in enumerate(op.operands):
            if _is_made(operand) and operand.owner in copies:
                target.operands[number] = copies[operand.owner].results[0]


def _numbers(gather: ir.Operation) -> list[ir.Operation]:
    """The ops that compute a gather's indices and mask, each behind those it needs."""
    found = OpSet()

    def visit(value: ir.Value) -> None:
        if _is_made(value) and value.owner not in found:
            for operand in value.owner.operands:
                visit(operand)
            found.add(value.owner.operation)

    for value in (*gather.opview.indices, gather.opview.mask):
        visit(value)
    return list(found)


def _is_made(value: ir.Value) -> bool:
    """Whether a tile is computed, from others or from nothing."""
    op = defining_op(value)
    if op is None or not is_tile(value):
        return False
    return is_of(op, *_MADE) or op.name == "tensor.splat" or is_elementwise(op)
