"""Random `tile` programs whose results are exact, for comparison bit by bit.

Floats hold small integers: `Tile.bound` tracks how large they may get, and a tile is clamped before
its element type would round. So a program means the same in any order of evaluation, and NumPy is
the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tile_programs import Options

from random_programs import combinations, control, elementwise, memory, shapes
from random_programs.writer import Writer

STRAIGHT: tuple[Callable[[Writer], object], ...] = (
    elementwise.binary,
    memory.load,
    elementwise.compare_and_select,
    elementwise.convert,
    elementwise.iota,
    shapes.broadcast,
    shapes.reshape,
    shapes.transpose,
    shapes.join,
    shapes.split,
    shapes.take,
    combinations.combine,
    combinations.argmax,
    combinations.affine_scan,
    combinations.dot,
    memory.gather,
    memory.scatter,
)
NESTED: tuple[Callable[[Writer], object], ...] = (control.loop, control.branch, control.repeat)
OUTPUTS = 6
"""At most this many tiles are stored."""


@dataclass
class RandomProgram:
    """A kernel's text, its arguments (outputs poisoned) and how to launch it."""

    text: str
    arguments: list[np.ndarray]
    grid: tuple[int, ...]
    options: Options

    def __repr__(self) -> str:
        arrays = [(a.shape, a.strides, str(a.dtype)) for a in self.arguments]
        return f"{self.options} grid={self.grid} arrays={arrays}\n{self.text}"


def programs(
    steps: int = 6,
    most: int = 2048,
    targets: Sequence[str] = ("sm_80",),
    ops: Sequence[Callable[[Writer], object]] = STRAIGHT + NESTED,
) -> st.SearchStrategy[RandomProgram]:
    """Programs of about `steps` ops out of `ops` on tiles of at most `most` elements."""

    @st.composite
    def build(draw: Callable[[st.SearchStrategy[Any]], Any]) -> RandomProgram:
        writer = Writer(draw, most, targets, ops)
        for _ in range(writer.number(1, steps)):
            writer.step()
        loose = [t for t in writer.scopes[0] if t.name not in writer.used]
        for tile in loose[-OUTPUTS:]:
            memory.store(writer, tile)
        return RandomProgram(writer.kernel(), writer.arguments, writer.grid, writer.options)

    return build()
