"""Lowers ops that make or rename elements: registers are chosen, nothing moves between threads.

Layout inference gave source and result layouts that agree (see `passes.layout_maps`), so each result
register is a source register of the same thread.
"""

from __future__ import annotations

from math import prod

from tilec.diagnostics import InternalError
from tilec.dialects import tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.layout import Layout
from tilec.passes.lower_to_nvvm.state import Lowering, create


def lower_iota(op: tile.IotaOp, state: Lowering) -> None:
    """Each register's coordinate along the axis."""
    layout, rank = layout_of(op.result), len(shape(op.result))
    base = state.thread_coordinates(layout, rank)[op.axis]
    scalar = state.scalar_type(element(op.result))
    width = scalar.width
    if width > 32:
        base = create("arith.extsi", [base], scalar)
    elif width < 32:
        base = create("arith.trunci", [base], scalar)
    made = {}
    for offsets in layout.value_coordinates(rank):
        step = offsets[op.axis]
        if step not in made:
            constant = state.constant(scalar, step)
            made[step] = create("arith.addi", [base, constant], scalar) if step else base
    state.values[op.result] = [made[o[op.axis]] for o in layout.value_coordinates(rank)]


def _register_at(layout: Layout, rank: int) -> dict[tuple[int, ...], int]:
    return {at: i for i, at in enumerate(layout.value_coordinates(rank))}


def lower_broadcast(op: tile.BroadcastOp, state: Lowering) -> None:
    """Result register at c is the source register at c's kept dimensions (0 where the source is 1)."""
    source, result = layout_of(op.src), layout_of(op.result)
    sizes = shape(op.src)
    held = _register_at(source, len(sizes))
    registers = state.registers(op.src)
    state.values[op.result] = [
        registers[held[tuple(0 if s == 1 else at[d] for s, d in zip(sizes, op.dims, strict=True))]]
        for at in result.value_coordinates(len(shape(op.result)))
    ]


def lower_transpose(op: tile.TransposeOp, state: Lowering) -> None:
    """Result register at c is the source register at the permuted c."""
    rank = len(op.permutation)
    held = _register_at(layout_of(op.src), rank)
    registers = state.registers(op.src)
    chosen = []
    for at in layout_of(op.result).value_coordinates(rank):
        source = [0] * rank
        for i, p in enumerate(op.permutation):
            source[p] = at[i]
        chosen.append(registers[held[tuple(source)]])
    state.values[op.result] = chosen


def _linear(at: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    total = 0
    for coordinate, size in zip(at, sizes, strict=True):
        total = total * size + coordinate
    return total


def lower_reshape(op: tile.ReshapeOp, state: Lowering) -> None:
    """Registers meet by their row-major number; both layouts cover their tiles exactly."""
    sizes, result_sizes = shape(op.src), shape(op.result)
    if prod(sizes) != prod(result_sizes):
        raise InternalError("reshape between different element counts")
    registers = state.registers(op.src)
    held = {
        _linear(at, sizes): register
        for at, register in zip(
            layout_of(op.src).value_coordinates(len(sizes)), registers, strict=True
        )
    }
    state.values[op.result] = [
        held[_linear(at, result_sizes)]
        for at in layout_of(op.result).value_coordinates(len(result_sizes))
    ]


def lower_join(op: tile.JoinOp, state: Lowering) -> None:
    """Result register at c comes from the input whose span along the axis holds c."""
    rank = len(shape(op.result))
    held = {}
    start = 0
    for value in op.inputs:
        for at, register in zip(
            layout_of(value).value_coordinates(rank), state.registers(value), strict=True
        ):
            held[(*at[: op.axis], at[op.axis] + start, *at[op.axis + 1 :])] = register
        start += shape(value)[op.axis]
    state.values[op.result] = [held[at] for at in layout_of(op.result).value_coordinates(rank)]


def lower_split(op: tile.SplitOp, state: Lowering) -> None:
    """Part p's register at c is the source register at c moved p parts along the axis."""
    rank = len(shape(op.src))
    held = _register_at(layout_of(op.src), rank)
    registers = state.registers(op.src)
    for number, part in enumerate(op.parts):
        start = number * shape(part)[op.axis]
        state.values[part] = [
            registers[held[(*at[: op.axis], at[op.axis] + start, *at[op.axis + 1 :])]]
            for at in layout_of(part).value_coordinates(rank)
        ]


RULES = {
    tile.IotaOp: lower_iota,
    tile.BroadcastOp: lower_broadcast,
    tile.TransposeOp: lower_transpose,
    tile.ReshapeOp: lower_reshape,
    tile.JoinOp: lower_join,
    tile.SplitOp: lower_split,
}
