"""Lowers ops that make or rename elements: registers are chosen; but for exchanges, which may
shuffle, nothing moves between threads.

What moves between threads became a conversion or went through buffers (`passes.split_conversions`),
so each result register is a source register of the same thread (`passes.layouts.maps`).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.hardware.layout import Layout
from tilec.messages.diagnostics import InternalError
from tilec.passes.layouts.partners import partners
from tilec.passes.layouts.parts import join_registers, split_registers
from tilec.passes.layouts.reshapes import reshape_registers
from tilec.passes.lower_to_nvvm.shuffle import shuffle
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import binary, resized


def lower_iota(op: tile.IotaOp, state: Lowering) -> None:
    """Gives each register its coordinate along the axis."""
    layout, rank = layout_of(op.result), len(shape(op.result))
    base = state.thread_coordinates(layout, rank)[op.axis]
    scalar = state.scalar_type(element(op.result))
    base = resized(base, scalar)
    made = {}
    for offsets in layout.value_coordinates(rank):
        step = offsets[op.axis]
        if step not in made:
            constant = state.constant(scalar, step)
            made[step] = binary("arith.addi", base, constant) if step else base
    state.values[op.result] = [made[o[op.axis]] for o in layout.value_coordinates(rank)]


def _register_at(layout: Layout, rank: int) -> dict[tuple[int, ...], int]:
    return {at: i for i, at in enumerate(layout.value_coordinates(rank))}


def lower_broadcast(op: tile.BroadcastOp, state: Lowering) -> None:
    """Takes, for the result register at c, the source register at c's kept dimensions (0 where the
    source is 1)."""
    source, result = layout_of(op.src), layout_of(op.result)
    sizes = shape(op.src)
    held = _register_at(source, len(sizes))
    registers = state.registers(op.src)
    state.values[op.result] = [
        registers[held[tuple(0 if s == 1 else at[d] for s, d in zip(sizes, op.dims, strict=True))]]
        for at in result.value_coordinates(len(shape(op.result)))
    ]


def lower_transpose(op: tile.TransposeOp, state: Lowering) -> None:
    """Takes, for the result register at c, the source register at the permuted c."""
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


def lower_reshape(op: tile.ReshapeOp, state: Lowering) -> None:
    """Registers meet by their row-major number."""
    chosen = reshape_registers(
        layout_of(op.src), shape(op.src), layout_of(op.result), shape(op.result)
    )
    if chosen is None:
        raise InternalError(f"a reshape across threads reached the lowering: {op}")
    registers = state.registers(op.src)
    state.values[op.result] = [registers[i] for i in chosen]


def lower_join(op: tile.JoinOp, state: Lowering) -> None:
    """Takes each result register from the input whose span along the axis holds it."""
    layouts, sizes = [layout_of(v) for v in op.inputs], [shape(v) for v in op.inputs]
    chosen = join_registers(layouts, sizes, layout_of(op.result), shape(op.result), op.axis)
    if chosen is None:
        raise InternalError(f"a join across threads reached the lowering: {op}")
    parts = [state.registers(v) for v in op.inputs]
    state.values[op.result] = [parts[number][register] for number, register in chosen]


def lower_split(op: tile.SplitOp, state: Lowering) -> None:
    """The inverse of a join."""
    layouts, sizes = [layout_of(v) for v in op.parts], [shape(v) for v in op.parts]
    chosen = split_registers(layouts, sizes, layout_of(op.src), op.axis)
    if chosen is None:
        raise InternalError(f"a split across threads reached the lowering: {op}")
    registers = state.registers(op.src)
    for part, held in zip(op.parts, chosen, strict=True):
        state.values[part] = [registers[i] for i in held]


def lower_exchange(op: tile.ExchangeOp, state: Lowering) -> None:
    """Partners in registers change names, those in lanes are shuffled."""
    registers = state.registers(op.src)
    found = partners(layout_of(op.src), len(shape(op.src)), op.axis, op.mask)
    if found is None:
        raise InternalError(f"an exchange across warps reached the lowering: {op}")
    moved = [registers[number] for number in found.registers]
    if found.lanes:
        moved = shuffle("bfly", moved, state.i32_constant(found.lanes), state)
    state.values[op.result] = moved


def lower_shift_vectors(op: gpu_tile.ShiftVectorsOp, state: Lowering) -> None:
    """Takes the end of each vector of `low`, and the beginning of that of `high`."""
    low, high = state.registers(op.low), state.registers(op.high)
    chosen: list[ir.Value] = []
    for start in range(0, len(low), op.width):
        chosen += low[start + op.first : start + op.width] + high[start : start + op.first]
    state.values[op.result] = chosen


RULES = {
    tile.IotaOp: lower_iota,
    tile.BroadcastOp: lower_broadcast,
    tile.TransposeOp: lower_transpose,
    tile.ReshapeOp: lower_reshape,
    tile.JoinOp: lower_join,
    tile.SplitOp: lower_split,
    tile.ExchangeOp: lower_exchange,
    gpu_tile.ShiftVectorsOp: lower_shift_vectors,
}
