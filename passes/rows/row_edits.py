"""Moves what a kernel of one row alone does to other columns of its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.types import element, shape
from tilec.passes.rewriting.scalars import as_type, create
from tilec.passes.rewriting.values import replace_uses
from tilec.passes.rows.row_kernels import Access


def begin_at(access: Access, axis: int, column: ir.Value) -> None:
    """Lets an access begin at a column of its row, which lies along this axis of its array."""
    operands = access.operation.operands
    operands[len(operands) - len(shape(access.array)) + axis] = column


def move_columns(
    ops: Sequence[ir.Operation],
    size: int,
    by: ir.Value,
    moved: Callable[[ir.Value, ir.Value], ir.Value],
) -> None:
    """Gives each user of an iota along rows of `size` elements other columns, `moved(columns, by)`
    with `by` in each element, made where it stands: kept from the first user on, they would take a
    register each."""
    for iota in of_kind(ops, tile.IotaOp):
        type_ = iota.result.type
        if shape(iota.result)[iota.axis] != size:
            continue
        for use in list(iota.result.uses):
            with ir.InsertionPoint(use.owner), use.owner.location:
                number = as_type(by, element(type_))
                column = moved(iota.result, create("tensor.splat", [number], type_))
                replace_uses([use], column)
