"""Which CTAs of a cluster of several pairs need the same tile: each of them loads a part for all.

A pair is two neighbours along the cluster's first axis. The even ones of all pairs take the same
half of an rhs that does not depend on that axis, the odd ones the other; an lhs is the same along
the axes that it does not depend on.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import ClusterMaskOp, ClusterPositionOp
from tilec.dialects.gpu_tile.cluster import at
from tilec.hardware.mma_shapes import PAIR
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.records import dataclass

_EVEN_RANKS = sum(1 << rank for rank in range(0, PORTABLE_CTAS, PAIR))


@dataclass(frozen=True)
class Sharing:
    """The CTAs of a cluster that need the same tile: those that differ along `axes` only, and, if
    `across_pairs`, along the first axis by whole pairs."""

    shape: tuple[int, int, int]
    axes: tuple[int, ...]
    across_pairs: bool

    def ranks(self, rank: int) -> set[int]:
        """The ranks of the CTAs that need the same tile as the CTA of rank `rank`, itself among
        them."""
        here = at(self.shape, rank)

        def alike(there: list[int]) -> bool:
            first = here[0] == there[0] or (self.across_pairs and not (here[0] - there[0]) % PAIR)
            return first and all(here[a] == there[a] for a in (1, 2) if a not in self.axes)

        return {r for r in range(prod(self.shape)) if alike(at(self.shape, r))}

    @property
    def parts(self) -> int:
        """The number of CTAs that need the same tile, each of which loads one part of it."""
        return len(self.ranks(0))

    def mask(self, parity: ir.Value) -> ir.Value:
        """The mask, an i32, of the CTAs that need this one's tile; `parity`: 1 in odd CTAs."""
        if not self._along_pairs:
            return ClusterMaskOp.build(axes=self.axes)
        every = ClusterMaskOp.build(axes=(0, *self.axes))
        return binary("arith.andi", every, binary("arith.shli", i32_constant(_EVEN_RANKS), parity))

    def place(self) -> ir.Value:
        """This CTA's number, an i32, among those that need its tile: which part it loads."""
        number, below = i32_constant(0), 1
        if self._along_pairs:
            position = ClusterPositionOp.build(axis=0)
            number = binary("arith.divui", position, PAIR)
            below = self.shape[0] // PAIR
        for axis in self.axes:
            scaled = binary("arith.muli", ClusterPositionOp.build(axis=axis), below)
            number = binary("arith.addi", number, scaled)
            below *= self.shape[axis]
        return number

    @property
    def _along_pairs(self) -> bool:
        return self.across_pairs and self.shape[0] > PAIR
