"""How warpgroups share a tile that their matrix instructions work on.

The first 128 threads of its layout are one instruction's fragment; the thread modes past them say
where each further warpgroup's part begins, the values which instruction tiles a warpgroup has.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from tilec.hardware.fragments import Registers, instruction_registers
from tilec.hardware.layout import Layout, Mode
from tilec.hardware.matrix_descriptor import MatrixDescriptor, describe_operand
from tilec.hardware.mma_instruction import WARPGROUP_THREADS, MmaInstruction
from tilec.hardware.shared_layout import SharedLayout
from tilec.records import dataclass

BOTH_MAJOR_BYTES = 2
"""Element size of the types that may be contiguous along M or N (PTX ISA 9.0, "imm-trans-a")."""


@dataclass(frozen=True)
class WarpgroupTiles:
    """How warpgroups share a tile. `registers`: per instruction tile, by its first element's
    coordinates in the warpgroup's part, the fragment's registers. `groups`: thread modes from
    warpgroup to warpgroup."""

    registers: Registers
    groups: tuple[Mode, ...]

    def origins(self) -> Iterator[tuple[int, int]]:
        """The place where each warpgroup's part begins."""
        for digits in product(*(range(mode.size) for mode in self.groups)):
            at = [0, 0]
            for digit, mode in zip(digits, self.groups, strict=True):
                if mode.stride:
                    at[mode.dim] += digit * mode.stride
            yield at[0], at[1]

    def rows(self) -> list[set[int]]:
        """The first rows of the instruction tiles of each warpgroup."""
        return [{row + at[0] for at in self.registers} for row, _ in self.origins()]

    def columns(self) -> set[int]:
        """The first columns of the first warpgroup's instruction tiles."""
        return {at[1] for at in self.registers}


@lru_cache(maxsize=256)
def warpgroup_tiles(layout: Layout, fragment: Layout) -> WarpgroupTiles:
    """Takes a layout of whole fragments apart. ValueError if it is none."""
    bit = 1
    while bit < WARPGROUP_THREADS:
        if layout.thread_coordinates(bit, 2) != fragment.thread_coordinates(bit, 2):
            raise ValueError(f"layout {layout} does not begin with the fragment {fragment}")
        bit *= 2
    if layout.num_threads % WARPGROUP_THREADS:
        raise ValueError(f"layout {layout} is not spread over whole warpgroups")
    groups, below = [], 1
    for mode in layout.threads:
        inside = min(mode.size, max(1, WARPGROUP_THREADS // below))
        if mode.size > inside:
            groups.append(Mode(mode.size // inside, mode.stride * inside, mode.dim))
        below *= mode.size
    return WarpgroupTiles(instruction_registers(layout, fragment, 2), tuple(groups))


@dataclass(frozen=True)
class SharedOperand:
    """An operand in shared memory. `group_bytes`: per thread mode from warpgroup to warpgroup, by
    how much the matrix starts later."""

    descriptor: MatrixDescriptor
    group_bytes: tuple[int, ...]


def shared_operand(
    row: MmaInstruction,
    acc: WarpgroupTiles,
    layout: SharedLayout,
    element_bytes: int,
    sizes: tuple[int, ...],
    k_dim: int,
) -> SharedOperand:
    """Says how the instruction `row` reads a buffer of `sizes` (k along `k_dim`: 1 the lhs, 0 the
    rhs).

    ValueError says why it cannot.
    """
    block = (row.m if k_dim else row.n, row.k)
    descriptor = describe_operand(layout, element_bytes, sizes, k_dim, block)
    if not descriptor.k_contiguous and element_bytes != BOTH_MAJOR_BYTES:
        raise ValueError(
            f"{row.name} reads operands that are contiguous along k, found {layout} with k as "
            f"dimension {k_dim}"
        )
    own = 1 - k_dim

    def offset(at: int) -> int:
        return layout.offset((at, 0) if own == 0 else (0, at)) * element_bytes

    steps = tuple(offset(m.stride) if m.stride and m.dim == own else 0 for m in acc.groups)
    for mode, step in zip(acc.groups, steps, strict=True):
        for digit, start in product(range(mode.size), {at[own] for at in acc.registers}):
            if step and offset(digit * mode.stride + start) != digit * step + offset(start):
                raise ValueError(f"{layout}: the parts of the warpgroups do not lie evenly")
    return SharedOperand(descriptor, steps)
