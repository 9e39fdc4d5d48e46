"""Lowers tile.reduce, gpu_tile.warp_reduce and gpu_tile.thread_reduce: a tree in each thread, then
butterflies across lanes (but for the last).

A butterfly over the lane bits that lie on the axis leaves the result in every lane, which is what
the result's layout says: lanes of the axis hold copies. Warps are no matter of this file:
`warp_reduce` stops at them, and `passes.split_reductions` leaves no reduce whose axis spans
several.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import is_tile, shape
from tilec.hardware.layout import Layout
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import number_of
from tilec.passes.contract import show_location
from tilec.passes.layouts.axis_levels import Place, axis_levels, is_injective, is_spread_over_warps
from tilec.passes.lower_to_nvvm.combination import Combination, Item, choose
from tilec.passes.lower_to_nvvm.shuffle import shuffle_items
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import binary, compare, create, select
from tilec.passes.rewriting.values import round_alone
from tilec.passes.rewriting.walk import is_of

MOST_KEPT = 32
"""Places of extremes that a thread may keep in registers: with 64 the nearest of 2729 centres of 32
f16 take 30.8 us for 24.8, with 32 of 3949 of 168 bf16 153.7 for 159.3 (H200)."""

Rows = dict[tuple[int, ...], Item]
"""Per coordinates off the axis, one item."""


def lower_reduce(op: tile.ReduceOp, state: Lowering) -> None:
    """Lowers tile.reduce within warps."""
    if is_spread_over_warps(common_layout(op, op.inputs), op.axis):
        raise InternalError(
            f"{show_location(op.operation)}: tile.reduce across warps was not split"
        )
    rows = _reduce_in_warp(op, state)
    rank = len(shape(op.outputs[0]))
    for number, result in enumerate(op.outputs):
        coordinates = layout_of(result).value_coordinates(rank)
        state.values[result] = [rows[at].values[number] for at in coordinates]


def lower_warp_reduce(op: gpu_tile.WarpReduceOp, state: Lowering) -> None:
    """gpu_tile.warp_reduce: as reduce, each warp keeps its part's result."""
    _keep_partials(op, _reduce_in_warp(op, state), state)


def lower_thread_reduce(op: gpu_tile.ThreadReduceOp, state: Lowering) -> None:
    """gpu_tile.thread_reduce: as reduce, each thread keeps its part's result."""
    _keep_partials(op, _reduce_in_thread(op, Combination(op.body, state), state), state)


def lower_warp_spread(op: gpu_tile.WarpSpreadOp, state: Lowering) -> None:
    """gpu_tile.warp_spread: each register is that of its row's part."""
    rank, axis = len(shape(op.src)), op.axis
    places = layout_of(op.src).value_coordinates(rank)
    parts = {
        off_axis(at, axis): value for at, value in zip(places, state.registers(op.src), strict=True)
    }
    coordinates = layout_of(op.result).value_coordinates(rank)
    state.values[op.result] = [parts[off_axis(at, axis)] for at in coordinates]


def _keep_partials(
    op: gpu_tile.WarpReduceOp | gpu_tile.ThreadReduceOp, rows: Rows, state: Lowering
) -> None:
    rank, axis = len(shape(op.outputs[0])), op.axis
    for number, result in enumerate(op.outputs):
        coordinates = layout_of(result).value_coordinates(rank)
        state.values[result] = [rows[off_axis(at, axis)].values[number] for at in coordinates]


def common_layout(op: ir.OpView, values: Sequence[ir.Value]) -> Layout:
    """The one layout of several tiles. InternalError if they differ."""
    layouts = {layout_of(value) for value in values}
    if len(layouts) != 1:
        raise InternalError(f"{show_location(op.operation)}: inputs have different layouts")
    return layouts.pop()


def off_axis(coordinates: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Coordinates without the axis's."""
    return coordinates[:axis] + coordinates[axis + 1 :]


def axis_items(
    inputs: Sequence[ir.Value],
    layout: Layout,
    axis: int,
    combination: Combination,
    state: Lowering,
    *,
    mask: bool = True,
) -> dict[tuple[int, ...], Item]:
    """Gives, for each value coordinates, the inputs' elements there, phantoms along the axis marked
    if `mask`.

    Phantoms off the axis only ever meet phantoms. Registers that are phantoms in every thread are
    left out.
    """
    sizes = shape(inputs[0])
    rank = len(sizes)
    reach = list(layout.extents(rank))
    reach[axis] = min(reach[axis], sizes[axis])
    flags = state.valid(layout, reach) if mask else [None] * layout.num_values
    columns = [state.registers(value) for value in inputs]
    items = {}
    for number, at in enumerate(layout.value_coordinates(rank)):
        if at not in items and at[axis] < sizes[axis]:
            values = [column[number] for column in columns]
            items[at] = combination.item(values, flags[number])
    return items


def _reduce_in_thread(
    op: tile.ReduceOp | gpu_tile.WarpReduceOp | gpu_tile.ThreadReduceOp,
    combination: Combination,
    state: Lowering,
) -> Rows:
    layout, axis = common_layout(op, op.inputs), op.axis
    if not is_injective(axis_levels(layout, axis)):
        raise InternalError(
            f"{show_location(op.operation)}: layout {layout} holds elements twice along axis {axis}"
        )
    items = axis_items(op.inputs, layout, axis, combination, state)
    first = _leave_out_first_place(op, combination, items, state)
    columns: dict[tuple[int, ...], list[tuple[int, Item]]] = {}
    for at, item in items.items():
        columns.setdefault(off_axis(at, axis), []).append((at[axis], item))
    rows = {
        at: combination.combine_all(
            [item for _, item in sorted(column, key=lambda entry: entry[0])]
        )
        for at, column in columns.items()
    }
    if first is None:
        return rows
    return {at: Item((state.arith("addi", row.values[0], first),)) for at, row in rows.items()}


def _leave_out_first_place(
    op: tile.ReduceOp | gpu_tile.WarpReduceOp | gpu_tile.ThreadReduceOp,
    combination: Combination,
    items: dict[tuple[int, ...], Item],
    state: Lowering,
) -> ir.Value | None:
    """Has the items of a search for the least place along the axis (argmax) count from a thread's
    first, which comes back, None for other reductions: places in a thread are constants then, and
    not a register each, which LLVM keeps throughout a loop.

    The input is a choice between places and a number for "nowhere", which no place exceeds.
    """
    axis, choice = op.axis, defining_op(op.inputs[0], "arith.select")
    if combination.operation != "arith.minsi" or choice is None:
        return None
    holds, here, nowhere = choice.operands
    iota, most = defining_op(here), number_of(nowhere)
    if not (iota and is_of(iota, tile.IotaOp) and iota.opview.axis == axis):
        return None
    layout, sizes = layout_of(here), shape(here)
    masked = any(flag is not None for flag in state.valid(layout, sizes))
    if most is None or most < sizes[axis] or masked or not is_tile(holds):
        return None
    places = list(layout.value_coordinates(len(sizes)))
    if len({at[axis] for at in places}) <= MOST_KEPT:
        return None
    first = state.thread_coordinates(layout, len(sizes))[axis]
    beyond = binary("arith.subi", state.i32_constant(most), first)
    for at, flag in zip(places, state.registers(holds), strict=True):
        items[at] = Item((select(flag, state.i32_constant(at[axis]), beyond),))
    return first


def _reduce_in_warp(op: tile.ReduceOp | gpu_tile.WarpReduceOp, state: Lowering) -> Rows:
    combination = Combination(op.body, state)
    rows = _reduce_in_thread(op, combination, state)
    levels = axis_levels(common_layout(op, op.inputs), op.axis)
    bits = [
        level.position + bit
        for level in levels
        if level.place is Place.LANE
        for bit in range(level.size.bit_length() - 1)
    ]
    if len(bits) == WARP_SIZE.bit_length() - 1 and _has_redux(combination, rows, state):
        return {at: _redux(item, combination, state) for at, item in rows.items()}
    for bit in bits:
        rows = _combine_lanes(rows, 1 << bit, combination, state)
    return rows


_REDUX = {
    "arith.addi": "add",
    "arith.maxsi": "max",
    "arith.minsi": "min",
    "arith.maxui": "umax",
    "arith.minui": "umin",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
"""Combinations of i32 that one instruction does for a warp (PTX ISA 9.0, "redux.sync")."""


def _has_redux(combination: Combination, rows: Rows, state: Lowering) -> bool:
    types = {item.values[0].type for item in rows.values()}
    return combination.operation in _REDUX and types == {state.i32}


def _redux(item: Item, combination: Combination, state: Lowering) -> Item:
    kind = ir.Attribute.parse(f"#nvvm<redux_kind {_REDUX[combination.operation or '']}>")
    operands = [item.values[0], state.i32_constant(-1)]
    return Item((create("nvvm.redux.sync", operands, state.i32, kind=kind),))


def _combine_lanes(rows: Rows, mask: int, combination: Combination, state: Lowering) -> Rows:
    """Combines each item with that of the lane whose number differs in `mask`.

    Both lanes must get the same result, or copies would differ: the lower lane's item stands first
    unless the region is known to be commutative, and a sum is rounded alone.
    """
    items = list(rows.values())
    others = shuffle_items("bfly", items, state.i32_constant(mask), state)
    pairs = list(zip(items, others, strict=True))
    if combination.operation is None:
        masked = state.arith("andi", state.thread(), mask)
        is_lower = compare("eq", masked, state.i32_constant(0))
        pairs = [(choose(is_lower, a, b), choose(is_lower, b, a)) for a, b in pairs]
    combined = [combination.combine(a, b) for a, b in pairs]
    for item in combined:
        round_alone(item.values[0])
    return dict(zip(rows, combined, strict=True))


RULES = {
    tile.ReduceOp: lower_reduce,
    gpu_tile.WarpReduceOp: lower_warp_reduce,
    gpu_tile.ThreadReduceOp: lower_thread_reduce,
    gpu_tile.WarpSpreadOp: lower_warp_spread,
}
