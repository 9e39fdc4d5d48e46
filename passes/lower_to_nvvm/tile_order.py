"""Lowers the order of tiles: divisions by run-time sizes, once per program."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.passes.lower_to_nvvm.scalar_ops import compare, create
from tilec.passes.lower_to_nvvm.state import Lowering


def lower_tile_order(op: gpu_tile.TileOrderOp, state: Lowering) -> None:
    """The last group may have fewer rows."""
    linear, rows, columns = (state.values[v] for v in (op.linear, op.rows, op.columns))
    i32 = state.i32
    if op.order == "rows":
        state.values[op.row] = create("arith.divui", [linear, columns], i32)
        state.values[op.column] = create("arith.remui", [linear, columns], i32)
        return
    group = state.i32_constant(op.group)
    tiles = create("arith.muli", [columns, group], i32)
    number = create("arith.divui", [linear, tiles], i32)
    first = create("arith.muli", [number, group], i32)
    height = create("arith.subi", [rows, first], i32)
    height = create("arith.minui", [height, group], i32)
    inside = create("arith.remui", [linear, tiles], i32)
    row = create("arith.remui", [inside, height], i32)
    column = create("arith.divui", [inside, height], i32)
    if op.order == "hilbert":
        row, column = _along_the_curve(inside, (row, column), (height, columns), op.group, state)
    state.values[op.row] = create("arith.addi", [first, row], i32)
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
    i32, constant = state.i32, state.i32_constant
    bits = 2 * (side.bit_length() - 1)
    height, columns = sizes
    square = create("arith.shrui", [inside, constant(bits)], i32)
    begin = create("arith.muli", [square, constant(side)], i32)
    end = create("arith.addi", [begin, constant(side)], i32)
    fits = compare("ule", end, columns)
    is_high = compare("eq", height, constant(side))
    is_whole = create("arith.andi", [fits, is_high], state.i1)
    place = create("arith.andi", [inside, constant(side * side - 1)], i32)
    column, row = _hilbert(place, side, state)
    column = create("arith.addi", [begin, column], i32)
    row = create("arith.select", [is_whole, row, otherwise[0]], i32)
    return row, create("arith.select", [is_whole, column, otherwise[1]], i32)


def _hilbert(place: ir.Value, side: int, state: Lowering) -> tuple[ir.Value, ir.Value]:
    """Gives (x, y) of a place on the curve from (0, 0) to (side - 1, 0): two bits a level, from the
    smallest squares up (Warren, "Hacker's Delight", chapter 16)."""
    i32, constant = state.i32, state.i32_constant
    x, y, size = constant(0), constant(0), 1
    while size < side:
        half = create("arith.shrui", [place, constant(1)], i32)
        right = create("arith.andi", [half, constant(1)], i32)
        up = create("arith.andi", [create("arith.xori", [place, right], i32), constant(1)], i32)
        is_low = compare("eq", up, constant(0))
        is_right = create("arith.trunci", [right], state.i1)
        is_turned = create("arith.andi", [is_low, is_right], state.i1)
        last = constant(size - 1)
        x = create("arith.select", [is_turned, create("arith.subi", [last, x], i32), x], i32)
        y = create("arith.select", [is_turned, create("arith.subi", [last, y], i32), y], i32)
        x, y = (create("arith.select", [is_low, *pair], i32) for pair in ((y, x), (x, y)))
        x = create("arith.addi", [x, create("arith.muli", [right, constant(size)], i32)], i32)
        y = create("arith.addi", [y, create("arith.muli", [up, constant(size)], i32)], i32)
        place = create("arith.shrui", [place, constant(2)], i32)
        size *= 2
    return x, y
