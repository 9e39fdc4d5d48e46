"""Axes of the grid along which a launch has one program: its number there is 0, of 1.

    %pid = tt.get_program_id y : i32         becomes        %pid = arith.constant 0 : i32

A kernel for any grid adds such a number to its offsets (FlagGems' reductions of an axis do, `pid_k`
of as many programs as there are elements behind it): where elements begin is then known, so that
they move as vectors. The first axis stays: of few elements most launches have one program there,
and would be compiled twice.
"""

from __future__ import annotations

from tilec.executable.kernel import Grid
from tilec.triton.program import Function, Op, walk

_NUMBERS = {"tt.get_program_id": 0, "tt.get_num_programs": 1}
AXES = "yz"
"""Those that are looked at."""


def asked_axes(function: Function) -> frozenset[str]:
    """The axes along which a kernel asks where it is, or how many there are."""
    found = (op for block in function.blocks for op in walk(block) if op.name in _NUMBERS)
    return frozenset(_axis(op) for op in found) & frozenset(AXES)


def axes_alone(asked: frozenset[str], grid: Grid) -> frozenset[str]:
    """Those along which a launch has one program."""
    return frozenset(axis for axis in asked if grid["xyz".index(axis)] == 1)


def number_alone(function: Function, alone: frozenset[str]) -> None:
    """Makes constants of a program's number, and of how many there are, along these axes."""
    for op in [op for block in function.blocks for op in walk(block)]:
        if op.name in _NUMBERS and _axis(op) in alone:
            op.text = f"{_NUMBERS[op.name]} : {op.result.type}"
            op.name, op.words, op.attributes = "arith.constant", {}, {}


def _axis(op: Op) -> str:
    return next(axis for axis in "xyz" if axis in op.words)
