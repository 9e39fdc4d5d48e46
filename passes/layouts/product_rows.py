"""What becomes of the rows of a product, by which its warps share them."""

from __future__ import annotations

from tilec.dialects import tile
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_tile, shape


def keeps_rows(dot: tile.DotOp) -> bool:
    """Whether rows of a product had better lie in one warp each: a reduction or scan along them, or
    another dot whose lhs they are, would have warps exchange them."""
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
                return True
            if isinstance(user, tile.DotOp) and use.operand_number == 0:
                return True
            passed = list(user.operation.results)
            if user.operation.name == "scf.yield" and user.operation.parent.name == "scf.if":
                passed.append(user.operation.parent.results[use.operand_number])
            pending += [r for r in passed if is_tile(r) and shape(r) == shape(dot.acc)]
    return False
