"""Products by warpgroup instructions whose sum a loop carries: one of them may be in flight across
its back edge."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import only_use, only_user, users
from tilec.dialects.gpu_tile import WgmmaFenceOp, WgmmaOp, WgmmaWaitOp
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.types import is_tile
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import is_of

Waits = list[tuple[WgmmaWaitOp, WgmmaFenceOp]]
Links = tuple[WgmmaFenceOp, list[WgmmaOp], Waits, WgmmaWaitOp]
"""A fence, products, waits between two of these with the fences behind them, and the last wait."""


def carried_product(loop: ir.Operation) -> Links | None:
    """The way through the body of the only sum that a loop carries from product to product; None
    where there are several, or none."""
    body = loop.regions[0].blocks[0]
    arguments = enumerate(list(body.arguments)[1:])
    alone = ((n, a) for n, a in arguments if is_tile(a) and only_use(a) is not None)
    found = [links for n, a in alone if (links := links_of(a, body, n)) is not None]
    return found[0] if len(found) == 1 else None


def links_of(argument: ir.Value, block: ir.Block, number: int) -> Links | None:
    """The way of a carried value through a block to the operand of this number of its yield."""
    last = terminator(block)
    inside = [user for user in users(argument) if user.operation.block == block]
    if len(inside) != 1 or not is_of(inside[0], WgmmaFenceOp):
        return None
    (fence,), multiplies, between = inside, [], []
    value = fence.result
    while (user := only_user(value, WgmmaOp, WgmmaWaitOp)) is not None:
        if user.operation.block != block:
            return None
        value = user.result
        if is_of(user, WgmmaOp):
            multiplies.append(user)
            continue
        following = only_user(value, WgmmaFenceOp)
        if following is None or user.pending:
            break
        between.append((user, following))
        value = following.result
    if user is None or not multiplies or user.pending:
        return None
    if between and not all(is_buffer(multiply.lhs) for multiply in multiplies):
        return None
    use = only_use(user.result)
    yielded = use is not None and use.owner.operation == last and use.operand_number == number
    return (fence, multiplies, between, user) if yielded else None
