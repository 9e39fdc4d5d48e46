"""Tensor-memory layouts: in which lane and column each element of a buffer lies.

A CTA has 128 lanes of 512 columns of 32 bits (PTX ISA 9.0, "Tensor Memory Addressing"). A layout
reads `(128,256):(1@lane,1@col)`: per dimension of the tile its size and where a step along it
leads, hierarchical where a dimension is cut into parts (`((16,4),64):((1@lane,32@lane),1@col)`,
fastest part first). `n@lane` is n lanes, `n@col` n columns; `n@bit` is n bits, for elements that
share a column: `(128,64):(1@lane,16@bit)` are pairs of halves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod

from tilec.hardware.layout_notation import nested_groups
from tilec.records import dataclass

LANES = 128
"""Of tensor memory, its rows (PTX ISA 9.0, "Tensor Memory Addressing")."""
COLUMNS = 512
"""Of tensor memory (PTX ISA 9.0, "Tensor Memory Addressing")."""
COLUMN_BITS = 32
"""Of a lane's part of a column (PTX ISA 9.0, "Tensor Memory Addressing")."""
LEAST_COLUMNS = 32
"""The smallest allocation; larger ones are powers of two (PTX ISA 9.0, "tcgen05.alloc")."""


@dataclass(frozen=True)
class Part:
    """`size` steps along a dimension, each `lanes` lanes and `bits` bits further."""

    size: int
    lanes: int
    bits: int

    def __str__(self) -> str:
        if self.lanes:
            return f"{self.lanes}@lane"
        columns, rest = divmod(self.bits, COLUMN_BITS)
        return f"{self.bits}@bit" if rest else f"{columns}@col"


@dataclass(frozen=True)
class TensorMemoryLayout:
    """`dims`: per dimension its parts, fastest first."""

    dims: tuple[tuple[Part, ...], ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return tuple(prod(part.size for part in parts) for parts in self.dims)

    def along(self, dim: int, coordinate: int) -> tuple[int, int]:
        """Lanes and bits from the first element to that coordinate of a dimension."""
        lanes = bits = 0
        for part in self.dims[dim][:-1]:
            coordinate, digit = divmod(coordinate, part.size)
            lanes, bits = lanes + digit * part.lanes, bits + digit * part.bits
        last = self.dims[dim][-1]
        return lanes + coordinate * last.lanes, bits + coordinate * last.bits

    def place(self, coordinates: Sequence[int]) -> tuple[int, int]:
        """Lane and bit (32 to a column) of an element, from those of the first."""
        places = [self.along(dim, at) for dim, at in enumerate(coordinates)]
        return sum(lane for lane, _ in places), sum(bit for _, bit in places)

    @property
    def lanes(self) -> int:
        """Lanes from the first to one past the last."""
        return 1 + sum((part.size - 1) * part.lanes for parts in self.dims for part in parts)

    def columns(self, element_bits: int) -> int:
        """Columns that elements of so many bits take."""
        last = sum((part.size - 1) * part.bits for parts in self.dims for part in parts)
        return -(-(last + element_bits) // COLUMN_BITS)

    def permute(self, permutation: Sequence[int]) -> TensorMemoryLayout:
        """The same memory whose dimension i is dimension permutation[i] of this one."""
        return TensorMemoryLayout(tuple(self.dims[d] for d in permutation))

    def __str__(self) -> str:
        def group(entries: list[str]) -> str:
            return entries[0] if len(entries) == 1 else f"({','.join(entries)})"

        sizes = ",".join(group([str(p.size) for p in parts]) for parts in self.dims)
        steps = ",".join(group([str(p) for p in parts]) for parts in self.dims)
        return f"({sizes}):({steps})"


_UNITS = {"lane": (1, 0), "col": (0, COLUMN_BITS), "bit": (0, 1)}
_STEP = re.compile(r"(\d{1,5})@(lane|col|bit)")
_WORD = r"\d{1,5}@[a-z]+|\d{1,5}"
_EXPECTED = "expected e.g. '(128,256):(1@lane,1@col)'"


@lru_cache(maxsize=1024)
def parse_tensor_memory_layout(text: str) -> TensorMemoryLayout:
    """Reads the textual form. ValueError says what is wrong."""
    sizes, _, steps = text.partition(":")
    size_groups, step_groups = (nested_groups(part, _WORD) for part in (sizes, steps))
    if not size_groups or not step_groups:
        raise ValueError(f"malformed tensor-memory layout {text!r}; {_EXPECTED}")
    if [len(g) for g in size_groups] != [len(g) for g in step_groups]:
        raise ValueError(f"tensor-memory layout {text!r}: sizes and steps differ in structure")
    dims = tuple(
        tuple(_part(size, step, text) for size, step in zip(s, d, strict=True))
        for s, d in zip(size_groups, step_groups, strict=True)
    )
    layout = TensorMemoryLayout(dims)
    if layout.lanes > LANES or layout.columns(1) > COLUMNS:
        raise ValueError(
            f"tensor-memory layout {text!r} takes {layout.lanes} lanes and {layout.columns(1)} "
            f"columns of {LANES} and {COLUMNS}"
        )
    return layout


def _part(size: str, step: str, text: str) -> Part:
    match = _STEP.fullmatch(step)
    if not size.isdigit() or int(size) < 1 or not match:
        raise ValueError(f"tensor-memory layout {text!r}: malformed part {size}:{step}")
    lanes, bits = _UNITS[match[2]]
    return Part(int(size), int(match[1]) * lanes, int(match[1]) * bits)


@lru_cache(maxsize=256)
def blocked_tensor_memory(
    shape: tuple[int, int], block: tuple[int, int], element_bits: int
) -> TensorMemoryLayout:
    """A tile of `shape` in blocks as matrix instructions with 128 or 64 rows have them.

    A block of 128 rows has one in each lane; one of 64 rows has 16 in every 32 lanes (PTX ISA 9.0,
    "Data path layouts" D and F), and a second such block lies in the lanes between. Then blocks
    follow along the columns, those along the rows first. `element_bits`: 32, or what elements that
    share columns have. ValueError where the tile is not whole blocks.
    """
    if block[0] not in (64, LANES) or any(s % b for s, b in zip(shape, block, strict=True)):
        raise ValueError(f"{shape} is not made of blocks of {block}, of 64 or {LANES} rows")
    if element_bits not in (8, 16, COLUMN_BITS):
        raise ValueError(f"elements take 8, 16 or 32 bits of a column, found {element_bits}")
    below, across = (s // b for s, b in zip(shape, block, strict=True))
    step = block[1] * element_bits
    if step % COLUMN_BITS and below * across > 1:
        raise ValueError(f"a block of {block[1]} elements of {element_bits} bits ends in a column")
    rows = [Part(LANES, 1, 0)]
    if block[0] == 64:
        rows = [Part(16, 1, 0), Part(4, 32, 0)]
        if below % 2 == 0:
            rows.append(Part(2, 16, 0))
            below //= 2
    if below > 1:
        rows.append(Part(below, 0, step))
    columns = [Part(block[1], 0, element_bits)]
    if across > 1:
        columns.append(Part(across, 0, step * below))
        if columns[1].bits == columns[0].size * columns[0].bits:
            columns = [Part(shape[1], 0, element_bits)]
    layout = TensorMemoryLayout((tuple(rows), tuple(columns)))
    if layout.columns(element_bits) > COLUMNS:
        raise ValueError(f"{shape} takes {layout.columns(element_bits)} columns of {COLUMNS}")
    return layout
