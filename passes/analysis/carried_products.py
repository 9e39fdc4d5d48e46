"""Products by warpgroup instructions whose sum a loop carries: one of them may be in flight across
its back edge."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import only_use, only_user, users
from tilec.dialects.gpu_tile import WgmmaFenceOp, WgmmaOp, WgmmaWaitOp
from tilec.dialects.types import is_tile
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import is_of

Links = tuple[WgmmaFenceOp, list[WgmmaOp], WgmmaWaitOp]


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
    (fence,), multiplies = inside, []
    value = fence.result
    while (user := only_user(value, WgmmaOp)) is not None and user.operation.block == block:
        multiplies.append(user)
        value = user.result
    wait = only_user(value, WgmmaWaitOp)
    if not multiplies or wait is None or wait.pending:
        return None
    use = only_use(wait.result)
    yielded = use is not None and use.owner.operation == last and use.operand_number == number
    return (fence, multiplies, wait) if yielded else None
