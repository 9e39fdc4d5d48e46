"""Random `tile` programs on the emulator, bit by bit as NumPy executes them.

The programs are the same in every run, and eight times as many in one that takes everything
(`shares.py`); `TILEC_EXAMPLES=500` draws that many new ones instead.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from random_programs import NESTED, STRAIGHT, RandomProgram, combinations, memory, programs, shapes
from shares import WHOLE
from tile_programs import check, compare, dump, execute, reference, resume, twin

MORE = int(os.environ.get("TILEC_EXAMPLES", "0"))
TIMES = 8 if WHOLE in os.environ else 1
Test = TypeVar("Test")
MOVES = (shapes.join, shapes.split, shapes.reshape, shapes.transpose)
TARGETS = ("sm_80", "sm_90a", "sm_100a")


def examples(count: int) -> Callable[[Test], Test]:
    """Bounded and repeatable, unless new examples are asked for."""
    limits = settings(
        max_examples=MORE or TIMES * count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return limits if MORE else lambda test: seed(0)(limits(test))


def check_program(program: RandomProgram) -> None:
    """Runs it once; every output and its surroundings must agree."""
    check(program.text, program.arguments, program.grid, program.options)


@examples(16)
@given(programs(steps=6, ops=STRAIGHT))
def test_straight_line_code(program: RandomProgram) -> None:
    check_program(program)


@examples(10)
@given(programs(steps=8, targets=TARGETS))
def test_loops_and_branches(program: RandomProgram) -> None:
    check_program(program)


@examples(7)
@given(programs(steps=5, most=4096, ops=(shapes.broadcast, *NESTED, combinations.dot, memory.load)))
def test_dots_in_loops(program: RandomProgram) -> None:
    check_program(program)


@examples(7)
@given(programs(steps=4, most=4096, ops=MOVES))
def test_moving_elements(program: RandomProgram) -> None:
    check_program(program)


@examples(4)
@given(programs(steps=5), st.integers(0, 100))
def test_a_dumped_program_goes_on(program: RandomProgram, choice: int) -> None:
    """Stopped after some pass, parsed again, compiled on: the same bytes."""
    expected = reference(program.text, program.arguments, program.grid)
    with tempfile.TemporaryDirectory() as directory:
        arguments = [twin(a) for a in program.arguments]
        _, dumps = dump(program.text, arguments, program.options, Path(directory))
        job = resume(dumps[choice % len(dumps)], program.options)
    execute(job, arguments, program.grid)
    compare(arguments, expected)
