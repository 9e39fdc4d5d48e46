"""Where mma.sync finds the scales of its operands: lanes, bytes, and the selectors that name them.

PTX ISA 9.0, "Block scaling for mma.sync". A lane has the scales of a row (of the rhs: a column) in
a 32-bit register, up to four along k. Of the four lanes of each group an lhs of 16 rows is read
from two, rows r and r + 8 of group r, and an rhs of 8 columns from one; the instruction's thread-id
says from which, its byte-id from which byte on. So a register serves two instructions along m or
four along n, and along k as many as four scales are enough for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tilec.hardware.fragments import instruction_repeats, modes_after
from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.records import dataclass

GROUPS, GROUP_LANES = 8, 4
"""Groups of lanes of a warp, and the lanes of each (PTX ISA 9.0, "Block scaling for mma.sync")."""
WORD_SCALES = 4
"""Of a register, a byte each (PTX ISA 9.0, "Block scaling for mma.sync")."""


def scale_layout(instruction: MmaInstruction, acc: Layout, blocks: int, axis: int) -> Layout:
    """Registers that hold the scales of an operand whose accumulator has the layout `acc`.

    `axis` 0: those of the lhs, (m, blocks); 1: those of the rhs, (blocks, n). All `blocks` of a row
    are one thread's, neighbours in its registers.
    """
    rows, tiles = _rows(instruction, axis), _shared_tiles(instruction, acc, axis)
    lanes = tiles * rows // GROUPS
    threads = (
        Mode(lanes, GROUPS, axis),
        copies(GROUP_LANES // lanes),
        Mode(GROUPS, 1, axis),
        *(
            mode if mode.dim == axis or not mode.stride else copies(mode.size)
            for mode in modes_after(acc.threads, GROUPS * GROUP_LANES)
        ),
    )
    repeats = instruction_repeats(acc, axis, rows) // tiles
    values = (Mode(blocks, 1, 1 - axis), Mode(repeats, tiles * rows, axis))
    return normalize(Layout(threads, values))


@dataclass(frozen=True)
class ScalePlace:
    """The place of an instruction's scales: the registers that make up a word, fewer than four at
    the end of k, and what the instruction is told: thread-id and byte-id."""

    registers: tuple[int, ...]
    thread: int
    byte: int


def scale_place(
    instruction: MmaInstruction, acc: Layout, scales: Layout, at: Sequence[int], axis: int
) -> ScalePlace:
    """The scales of an instruction: `at`, the first row (column) and block of them among those of
    a thread in `scales`, a `scale_layout` of `acc`."""
    tiles, rows = _shared_tiles(instruction, acc, axis), _rows(instruction, axis)
    row, block = at
    first = row // (tiles * rows) * tiles * rows
    word = block // WORD_SCALES * WORD_SCALES
    registers = []
    for number, coordinates in enumerate(scales.value_coordinates(2)):
        inside = word <= coordinates[1 - axis] < word + WORD_SCALES
        if coordinates[axis] == first and inside:
            registers.append(number)
    return ScalePlace(tuple(registers), (row - first) // rows, block - word)


def _rows(instruction: MmaInstruction, axis: int) -> int:
    return instruction.n if axis else instruction.m


def _shared_tiles(instruction: MmaInstruction, acc: Layout, axis: int) -> int:
    """Instructions along `axis` that find their scales in one register of different lanes."""
    rows = _rows(instruction, axis)
    return gcd(GROUP_LANES * GROUPS // rows, instruction_repeats(acc, axis, rows))
