"""What becomes of the rows of a product, by which its warps share them."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_tile, shape


def keeps_rows(dot: tile.DotOp) -> bool:
    """Whether rows of a product had better lie in one warp each: a reduction or scan along them, or
    another dot whose lhs they are, would have warps exchange them."""
    return any(_readers_of_rows(dot))


def reduces_rows(dot: tile.DotOp) -> bool:
    """Whether a reduction or scan goes along rows of a product."""
    return any(isinstance(reader, Combining) for reader in _readers_of_rows(dot))


def _readers_of_rows(dot: tile.DotOp) -> Iterator[ir.OpView]:
    n = len(shape(dot.acc)) - 1
    pending, seen = [dot.result], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner.opview
            if isinstance(user, Combining) and user.axis == n:
                yield user
            if isinstance(user, tile.DotOp) and use.operand_number == 0:
                yield user
            passed = list(user.operation.results)
            if user.operation.name == "scf.yield" and user.operation.parent.name == "scf.if":
                passed.append(user.operation.parent.results[use.operand_number])
            pending += [r for r in passed if is_tile(r) and shape(r) == shape(dot.acc)]
