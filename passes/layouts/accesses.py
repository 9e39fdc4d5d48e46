"""Accesses of tiles to global memory, as layout inference weighs them."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.hardware.layout import Layout
from tilec.passes.layouts.candidates import access_cost, blocked_layout, neighbours_together
from tilec.records import dataclass

INTERLEAVED = 4
"""Elements at which the next one of a dimension lies whose stride nobody knows, where that of none
is 1: what such tiles run along is mostly interleaved with a few others (colours of a pixel, taps of
a channel), and where it is not all layouts touch as many sectors."""


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store of a rectangular tile, or a gather, scatter or atomic.

    `value`: the tile that moves; of a scatter its mask, which lies as it is stored. `contiguous`:
    the tile dimension whose neighbours are neighbours in memory, None where none is known; `width`:
    how many of them one instruction may move. `strided`: where none is known, the dimension that
    elements lie nearest along, for all one knows. `is_indexed`: its elements have indices of their
    own. `depth`: `depth_factor`. `beside`: a dimension, and how far along it other loads are from
    this one, and this one: a thread that has neighbours along it loads what they share once.
    """

    op: ir.Operation
    value: ir.Value
    shape: tuple[int, ...]
    contiguous: int | None
    width: int
    element_bytes: int
    depth: int
    is_load: bool
    is_indexed: bool
    strided: int | None = None
    beside: tuple[int, tuple[int, ...]] | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.element_bytes

    @property
    def weight(self) -> int:
        """The bytes that its layout matters for, scaled by loop depth: none where memory says the
        places, which all layouts serve alike."""
        is_anywhere = self.is_indexed and self.contiguous is None and self.strided is None
        return 0 if is_anywhere else self.bytes * self.depth

    def cost(self, layout: Layout) -> int:
        """The traffic that the access causes in `layout`, in bytes, scaled by loop depth."""
        apart = self.strided is not None
        cost = self.depth * access_cost(
            layout,
            self.shape,
            self.strided if apart else self.contiguous,
            self.element_bytes * (INTERLEAVED if apart else 1),
            self.width,
            is_load=self.is_load,
        )
        if self.beside is None:
            return cost
        dim, distances = self.beside
        rows = {at[dim] for at in layout.value_coordinates(len(self.shape))}
        loaded = {row + distance for row in rows for distance in distances}
        return cost * len(loaded) // (len(rows) * len(distances))

    def preferred(
        self, num_threads: int, width: int | None = None, along: int | None = None
    ) -> Layout:
        """The coalesced layout; `width`: of a neighbour that moves more elements at once; `along`:
        the most threads along the contiguous dimension."""
        if not self.shape:
            return blocked_layout((), 0, 1, num_threads)
        near = (self.contiguous, self.strided, len(self.shape) - 1)
        contiguous = next(dim for dim in near if dim is not None)
        usual = blocked_layout(
            self.shape, contiguous, width or self.width, num_threads, along=along
        )
        if self.beside is None:
            return usual
        return min(usual, neighbours_together(usual, self.beside[0]), key=self.cost)
