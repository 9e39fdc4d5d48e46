"""The order of a two-dimensional grid of programs: what its author asks for, else groups of rows.

tile.order = ["hilbert", 16 : i32]    (order=("hilbert", 16) of @tilec.kernel)
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.demands import demanded
from tilec.records import dataclass
from tilec.terms.demands import ORDER


@dataclass(frozen=True)
class ProgramOrder:
    """The order of a kernel's programs: its `name` and group as `gpu_tile.tile_order` takes them.
    `demanded`: by the author."""

    name: str
    group: int
    demanded: bool = False

    @property
    def text(self) -> str:
        """The order as a report names it."""
        if self.name == "hilbert":
            return f"Hilbert's curve in squares of {self.group}"
        return f"groups of {self.group} rows" if self.name == "grouped" else "row by row"


def program_order(function: ir.Operation, group: int, square: int) -> ProgramOrder:
    """The order of a kernel, groups of `group` rows where its author leaves it open; `square`: the
    side of what Hilbert's curve fills."""
    order = demanded(function, ORDER)
    if order is None:
        return ProgramOrder("grouped", group)
    if isinstance(order, tuple):
        return ProgramOrder(*order, demanded=True)
    return ProgramOrder(order, square if order == "hilbert" else group, demanded=True)
