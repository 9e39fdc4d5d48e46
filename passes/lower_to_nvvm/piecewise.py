"""Runs of elementwise ops on large tiles, lowered a few registers at a time
(`analysis/piecewise_runs.py`)."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.dialects.types import is_tile
from tilec.passes.analysis.piecewise_runs import PIECE, Run
from tilec.passes.lower_to_nvvm.packed import apart
from tilec.passes.lower_to_nvvm.state import Lowering

LowerOp = Callable[[ir.Operation, Lowering], None]


def lower_run(run: Run, state: Lowering, lower_op: LowerOp) -> None:
    """Lowers a run by `lower_op`, for each piece of its tiles' registers anew.

    An op finds in `state.values` the piece of its operands, as if their tiles were no larger.
    """
    for op in run.ahead:
        with op.location:
            lower_op(op, state)
    made = [op.results[0] for op in run.ops]
    given = {v for op in run.ops for v in op.operands if is_tile(v) and v not in made}
    whole = {value: state.registers(value) for value in given}
    found: dict[ir.Value, list[ir.Value]] = {value: [] for value in made}
    for first in range(0, run.count, PIECE):
        state.piece = first
        for value, registers in whole.items():
            state.values[value] = _taken_apart(registers[first : first + PIECE], state)
        for op in run.ops:
            with op.location:
                lower_op(op, state)
            found[op.results[0]] += state.registers(op.results[0])
    state.piece = 0
    state.values.update(whole)
    state.values.update(found)


def _taken_apart(registers: list[ir.Value], state: Lowering) -> list[ir.Value]:
    """The same elements, those of words taken from them anew: ptxas would keep all halves of a tile
    in registers of their own from where they were first taken apart."""
    taken = list(registers)
    for first in range(0, len(registers) - 1, 2):
        word = state.whole(tuple(registers[first : first + 2]))
        if word is not None:
            type_ = ir.VectorType.get([2], registers[first].type)
            taken[first : first + 2] = apart(word, type_, state)
    return taken
