"""What becomes of the rows of a product, by which its warps share them."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_tile, shape
from tilec.passes.rewriting.walk import uses_behind


def keeps_rows(dot: tile.DotOp) -> bool:
    """Whether rows of a product had better lie in one warp each: a reduction or scan along them, or
    another dot whose lhs they are, would have warps exchange them."""
    return any(_readers_of_rows(dot))


def reduces_rows(dot: tile.DotOp) -> bool:
    """Whether a reduction or scan goes along rows of a product."""
    return any(isinstance(reader, Combining) for reader in _readers_of_rows(dot))


def reduces_columns(dot: tile.DotOp) -> Iterator[Combining]:
    """The reductions and scans across the rows of a product: its warps wait for each other."""
    m = len(shape(dot.acc)) - 2
    readers = (reader for reader, _ in _readers(dot))
    return (reader for reader in readers if isinstance(reader, Combining) and reader.axis == m)


def reduces_rhs(dot: tile.DotOp) -> Iterator[Combining]:
    """The reductions and scans of what the rhs is, or its transpose, beside the product: all warps
    need what each of them has reduced a part of."""
    source = dot.rhs
    while (turned := defining_op(source, tile.TransposeOp.OPERATION_NAME)) is not None:
        source = turned.opview.src
    for reader, _ in _readers_of(source):
        if isinstance(reader, Combining) and reader.operation.block == dot.operation.block:
            yield reader


def _readers_of_rows(dot: tile.DotOp) -> Iterator[ir.OpView]:
    n = len(shape(dot.acc)) - 1
    for reader, number in _readers(dot):
        if isinstance(reader, Combining) and reader.axis == n:
            yield reader
        if isinstance(reader, tile.DotOp) and number == 0:
            yield reader


def _readers(dot: tile.DotOp) -> Iterator[tuple[ir.OpView, int]]:
    """What reads a product, or what is computed of it element by element, by which operand."""
    return _readers_of(dot.result)


def _readers_of(value: ir.Value) -> Iterator[tuple[ir.OpView, int]]:
    """The same of any tile."""

    def passed_on(use: ir.OpOperand) -> list[ir.Value]:
        op = use.owner.operation
        passed = list(op.results)
        if op.name == "scf.yield" and op.parent.name == "scf.if":
            passed.append(op.parent.results[use.operand_number])
        return [r for r in passed if is_tile(r) and shape(r) == shape(value)]

    for use in uses_behind(value, passed_on):
        yield use.owner.opview, use.operand_number
