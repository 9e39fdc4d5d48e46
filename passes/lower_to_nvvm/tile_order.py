"""Lowers the order of tiles: divisions by run-time sizes, once per program."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import compare, create, select


def lower_tile_order(op: gpu_tile.TileOrderOp, state: Lowering) -> None:
    """The last group may have fewer rows."""
    linear, rows, columns = (state.values[v] for v in (op.linear, op.rows, op.columns))
    if op.order == "rows":
        state.values[op.row] = state.arith("divui", linear, columns)
        state.values[op.column] = state.arith("remui", linear, columns)
        return
    group = state.i32_constant(op.group)
    tiles = state.arith("muli", columns, group)
    number = state.arith("divui", linear, tiles)
    first = state.arith("muli", number, group)
    height = state.arith("subi", rows, first)
    height = state.arith("minui", height, group)
    inside = state.arith("remui", linear, tiles)
    row = state.arith("remui", inside, height)
    column = state.arith("divui", inside, height)
    if op.order == "hilbert":
        row, column = _along_the_curve(inside, (row, column), (height, columns), op.group, state)
    state.values[op.row] = state.arith("addi", first, row)
    state.values[op.column] = column


def _along_the_curve(
    inside: ir.Value,
    otherwise: tuple[ir.Value, ir.Value],
    sizes: tuple[ir.Value, ir.Value],
    side: int,
    state: Lowering,
) -> tuple[ir.Value, ir.Value]:
    """Gives row and column of tile `inside` of a group of rows: in squares along Hilbert's curve,
    which ends beside the next square's begin; `otherwise` where no whole square is left."""
    constant = state.i32_constant
    bits = 2 * (side.bit_length() - 1)
    height, columns = sizes
    square = state.arith("shrui", inside, bits)
    begin = state.arith("muli", square, side)
    end = state.arith("addi", begin, side)
    fits = compare("ule", end, columns)
    is_high = compare("eq", height, constant(side))
    is_whole = state.arith("andi", fits, is_high)
    place = state.arith("andi", inside, side * side - 1)
    column, row = _hilbert(place, side, state)
    column = state.arith("addi", begin, column)
    row = select(is_whole, row, otherwise[0])
    return row, select(is_whole, column, otherwise[1])


def _hilbert(place: ir.Value, side: int, state: Lowering) -> tuple[ir.Value, ir.Value]:
    """Gives (x, y) of a place on the curve from (0, 0) to (side - 1, 0): two bits a level, from the
    smallest squares up (Warren, "Hacker's Delight", chapter 16)."""
    i32, constant = state.i32, state.i32_constant
    x, y, size = constant(0), constant(0), 1
    while size < side:
        half = state.arith("shrui", place, 1)
        right = state.arith("andi", half, 1)
        up = state.arith("andi", state.arith("xori", place, right), 1)
        is_low = compare("eq", up, constant(0))
        is_right = create("arith.trunci", [right], state.i1)
        is_turned = state.arith("andi", is_low, is_right)
        last = constant(size - 1)
        x = select(is_turned, state.arith("subi", last, x), x)
        y = select(is_turned, state.arith("subi", last, y), y)
        x, y = (create("arith.select", [is_low, *pair], i32) for pair in ((y, x), (x, y)))
        x = state.arith("addi", x, state.arith("muli", right, size))
        y = state.arith("addi", y, state.arith("muli", up, size))
        place = state.arith("shrui", place, 2)
        size *= 2
    return x, y
