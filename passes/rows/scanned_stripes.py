"""Scans of rows that are spread over CTAs: each stripe scans its own, and combines that with what
the stripes in front of it come to."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import element, is_tile, shape, with_element, with_shape
from tilec.dialects.types import tile as tile_type
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.scalars import binary, compare, create, i32_constant, select
from tilec.passes.rewriting.values import replace_uses, with_body


def why_whole(scan: tile.ScanOp) -> str | None:
    """What forbids that the stripes of a row scan it; None if nothing."""
    *steps, _ = [view.operation for view in scan.body.operations]
    known = all(is_elementwise(op) and len(op.regions) == 0 for op in steps)
    return None if known else "a scan's step is more than arithmetic"


def scan_stripes(scan: tile.ScanOp, stripe: ir.Value, stripes: int) -> None:
    """Lets a scan of a stripe go on from the stripes in front of it, with `reverse` behind it."""
    uses = [list(value.uses) for value in scan.outputs]
    with ir.InsertionPoint(behind(scan.operation)), scan.operation.location:
        before = _before(scan, stripe, stripes)
        whole = [_repeated(one, own) for one, own in zip(before, scan.outputs, strict=True)]
        joined = _combined(scan.body, whole, list(scan.outputs))
        first, other = (stripes - 1, "slt") if scan.reverse else (0, "sgt")
        follows = compare(other, _number(stripe), i32_constant(first))
        for found, own, both in zip(uses, scan.outputs, joined, strict=True):
            replace_uses(found, select(follows, both, own))


def gathered(values: Sequence[ir.Value], stripes: int) -> list[ir.Value]:
    """What all stripes have for tiles of one element each."""
    rows = [tile_type((stripes,), element(value)) for value in values]
    return [
        tile.GatherStripesOp.build(as_shape(value, ()), results=[row])
        for value, row in zip(values, rows, strict=True)
    ]


def as_shape(value: ir.Value, sizes: tuple[int, ...]) -> ir.Value:
    """Reshapes a tile of one element to another rank."""
    if shape(value) == sizes:
        return value
    return tile.ReshapeOp.build(value, results=[with_shape(value, sizes)])


def _before(scan: tile.ScanOp, stripe: ir.Value, stripes: int) -> list[ir.Value]:
    """What the stripes in front come to, of the first whatever: a tile of one element each."""
    axis = scan.axis
    sizes = shape(scan.inputs[0])
    ends = [with_shape(value, (*sizes[:axis], *sizes[axis + 1 :])) for value in scan.inputs]
    mine = tile.ReduceOp.build(scan.inputs, results=[ends], axis=axis)
    ends = gathered(with_body(mine, scan.operation), stripes)
    made = [value.type for value in ends]
    along = tile.ScanOp.build(ends, results=[made], axis=0, reverse=scan.reverse)
    along = with_body(along, scan.operation)
    i32 = ir.IntegerType.get_signless(32)
    number = tile.IotaOp.build(results=[tile_type((stripes,), i32)], axis=0)
    wanted = binary("arith.addi", _number(stripe), 1 if scan.reverse else -1)
    is_it = compare("eq", number, create("tensor.splat", [wanted], number.type))
    return [_picked(is_it, value) for value in along]


def _picked(is_it: ir.Value, values: ir.Value) -> ir.Value:
    """That of a row's elements for which `is_it` holds."""
    i1 = ir.IntegerType.get_signless(1)

    def body(a: ir.Value, first: ir.Value, b: ir.Value, second: ir.Value) -> list[ir.Value]:
        return [binary("arith.ori", a, b), select(a, first, second)]

    types = [tile_type((), i1), tile_type((), element(values))]
    made = [i1, element(values)] * 2
    both = [is_it, values]
    return tile.ReduceOp.build(both, results=[types], axis=0, body=body, body_types=made)[1]


def _combined(
    body: ir.Block, before: Sequence[ir.Value], own: Sequence[ir.Value]
) -> list[ir.Value]:
    """Combines tiles element by element as a region combines numbers."""
    known: dict[ir.Value, ir.Value] = dict(zip(body.arguments, (*before, *own), strict=True))

    def tile_of(value: ir.Value) -> ir.Value:
        found = known.get(value, value)
        return found if is_tile(found) else _repeated(found, own[0])

    *steps, last = [view.operation for view in body.operations]
    for op in steps:
        operands = [tile_of(value) for value in op.operands]
        copy = op.clone(ir.InsertionPoint.current).operation
        for number, operand in enumerate(operands):
            copy.operands[number] = operand
        for result, made in zip(op.results, copy.results, strict=True):
            if operands:  # else it is a constant, a number as before
                made.set_type(with_element(own[0], result.type))
            known[result] = made
    return [tile_of(value) for value in last.operands]


def _repeated(value: ir.Value, like: ir.Value) -> ir.Value:
    """One element, or a number, in each element of a tile as `like`."""
    type_ = tile_type(shape(like), element(value) if is_tile(value) else value.type)
    if not is_tile(value):
        return create("tensor.splat", [value], type_)
    return tile.BroadcastOp.build(as_shape(value, ()), results=[type_], dims=())


def _number(stripe: ir.Value) -> ir.Value:
    return create("arith.index_cast", [stripe], ir.IntegerType.get_signless(32))
