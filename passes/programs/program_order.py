"""The order of a two-dimensional grid of programs: what its author asks for, else groups of rows.

tile.order = "hilbert", tile.group = 16 : i32    (order=("hilbert", 16) of @tilec.kernel)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.gpu_tile.schedule import ORDERS
from tilec.passes.rewriting.locations import error_at

ORDER = "tile.order"
"""Kernel attribute: the name of an order."""
ORDER_GROUP = "tile.group"
"""Kernel attribute: rows of a group, side of a square."""
SQUARE = 16
"""Side of the squares that Hilbert's curve fills: 11.5 x 11.5 programs run at once on an H200."""


@dataclass(frozen=True)
class ProgramOrder:
    """`name` as `gpu_tile.tile_order` takes it, and its group; `demanded` by the author."""

    name: str
    group: int
    demanded: bool = False

    @property
    def text(self) -> str:
        """As a report says it."""
        if self.name == "hilbert":
            return f"Hilbert's curve in squares of {self.group}"
        return f"groups of {self.group} rows" if self.name == "grouped" else "row by row"


def program_order(function: ir.Operation, group: int) -> ProgramOrder:
    """The order of a kernel, groups of `group` rows where its author leaves it open."""
    if ORDER not in function.attributes:
        return ProgramOrder("grouped", group)
    name = ir.StringAttr(function.attributes[ORDER]).value
    if name not in ORDERS:
        known = ", ".join(map(repr, ORDERS))
        raise error_at(function, f"{ORDER} must be one of {known}, found {name!r}")
    if ORDER_GROUP in function.attributes:
        group = function.attributes[ORDER_GROUP].value
    elif name == "hilbert":
        group = SQUARE
    return ProgramOrder(name, group, demanded=True)
